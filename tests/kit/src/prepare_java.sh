# `FOLDER FIXTURE OPTION`: the jars of the fixture's pom.xml, asked for with this option of Maven, and
# the classes of what stands beside it, in this folder.
test -e "$1/fetched" || {
    mvn -q -B -f "$2/pom.xml" "$3" dependency:copy-dependencies "-DoutputDirectory=$1" >&2 &&
        touch "$1/fetched"
} || exit 1
command -v javac >/dev/null || exit 1
for source in "$2"/*.java; do
    test ! -e "$source" || test "$1/classes" -nt "$source" || {
        javac -encoding UTF-8 -d "$1/classes" -cp "$1/*" "$source" && touch "$1/classes"
    } || exit 2
done
