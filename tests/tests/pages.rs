//! What people read. On the pages no link is dead, the files and tests that they name exist, and a
//! table's cell is read at a glance. No line of a page or of the sources is too long.
#![expect(
    clippy::unwrap_used,
    reason = "without the files there is nothing to test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages, and folders of pages.
const PAGES: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "lock-macros/src",
    "lock-runtime/docs",
    "tests/benches/README.md",
    "tests/long/README.md",
];

/// The folders with sources.
const FOLDERS: [&str; 4] = ["examples", "lock-macros", "lock-runtime", "tests"];

#[test]
fn the_readme_is_read_in_a_few_minutes() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= 170, "{lines} lines");
}

#[test]
fn no_link_is_dead() {
    let (mut links, mut dead) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links_of(&text) {
            links += 1;
            if let Err(why) = follow(&page, &link) {
                dead.push(format!("{}: {link}: {why}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(links > 100, "{links}");
}

/// Every file and every test that a page names, in full or by its end.
#[test]
fn what_the_pages_name_is_there() {
    let (mut paths, mut tests) = (Vec::new(), String::new());
    for folder in FOLDERS {
        for path in every_file(&root().join(folder)) {
            if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                // Elsewhere stand unit tests.
                if folder == "tests" || text.contains("test]\n") {
                    tests += &text;
                }
            }
            paths.push(path.to_str().unwrap().to_owned());
        }
    }
    let (mut named, mut missing) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for word in text.split('`').skip(1).step_by(2) {
            let is_file = word.ends_with(".rs") || word.ends_with(".lua");
            let is_path = is_file && !word.contains(['*', '<', ' ']);
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let is_test = word.chars().all(is_word) && word.split('_').count() > 4;
            let is_there = if is_path {
                paths.iter().any(|path| path.ends_with(&format!("/{word}")))
            } else {
                let (line, listed) = (format!("fn {word}("), format!("    {word},"));
                !is_test || tests.contains(&line) || tests.contains(&listed)
            };
            named += usize::from(is_path || is_test);
            if !is_there {
                missing.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 150, "{named}");
}

/// The answer stands in the cell. Its tests and its reasons stand below the table.
#[test]
fn no_cell_of_a_table_is_longer_than_160_characters() {
    let (mut cells, mut long) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let rows = by_hand(&text).filter(|(_, line)| line.starts_with('|'));
        for (number, cell) in rows.flat_map(|(at, row)| cells_of(row).map(move |cell| (at, cell))) {
            cells += 1;
            if cell.chars().count() > 160 {
                long.push(format!("{}:{number}: {cell}", page.display()));
            }
        }
    }
    assert!(
        long.is_empty(),
        "{} of {cells} cells: {long:#?}",
        long.len()
    );
    assert!(cells > 1000, "{cells}");
}

#[test]
fn no_line_of_the_pages_is_longer_than_100_columns() {
    let (mut lines, mut long) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (number, line) in by_hand(&text) {
            lines += 1;
            let can_be_broken = !line.starts_with('|') && definition(line).is_none();
            if line.chars().count() > 100 && can_be_broken {
                long.push(format!("{}:{number}", page.display()));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
    assert!(lines > 2000, "{lines}");
}

/// The numbered lines that a person has written as text: no code, and nothing of a benchmark.
fn by_hand(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut is_code, mut is_written) = (false, false);
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        is_written = match line.strip_prefix("<!-- ") {
            Some(mark) if mark.contains(": written by ") => true,
            Some(mark) if mark.starts_with("end of ") => false,
            _ => is_written,
        };
        !is_fence && !is_code && !is_written
    })
}

/// The cells of a table's row. A `\|` is a character of its cell.
fn cells_of(row: &str) -> impl Iterator<Item = String> {
    let row = row.replace("\\|", "\u{1}");
    let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
    cells.into_iter().filter(|cell| !cell.is_empty())
}

/// A test that can't fail shows nothing.
#[test]
fn a_long_cell_and_a_long_line_are_found() {
    let text = "| a | b\\|c |\n```text\n| fence |\n```\n<!-- x: written by the benchmark -->\n\
        | figure |\n<!-- end of x -->\ntext\n";
    let found: Vec<_> = by_hand(text)
        .filter(|(_, line)| !line.starts_with("<!--"))
        .collect();
    assert_eq!(found, [(1, "| a | b\\|c |"), (8, "text")]);
    assert_eq!(
        cells_of("| a | b\\|c |").collect::<Vec<_>>(),
        ["a", "b\u{1}c"]
    );
}

#[test]
fn each_setting_of_the_builder_stands_on_its_page() {
    let page = fs::read_to_string(root().join("lock-runtime/docs/settings.md")).unwrap();
    let client = root().join("lock-runtime/src/client");
    let mut files = every_file(&client.join("builder"));
    files.push(client.join("builder.rs"));
    let settings: Vec<String> = files.iter().flat_map(|file| settings_in(file)).collect();
    let rows = page
        .lines()
        .filter_map(|row| row.strip_prefix("| `")?.split_once(" | "));
    let named: BTreeSet<&str> = rows
        .flat_map(|(names, _)| names.split([',', ' ', '`']))
        .collect();
    let missing: Vec<_> = settings
        .iter()
        .filter(|setting| !named.contains(setting.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(settings.len() > 15, "{settings:?}");
}

/// The public functions of the builder that give it back, without those for simulations.
fn settings_in(file: &Path) -> Vec<String> {
    let file = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
    let blocks = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Impl(block) if block.trait_.is_none() => Some(block.items),
        _ => None,
    });
    let functions = blocks.flatten().filter_map(|item| match item {
        syn::ImplItem::Fn(function) => Some(function),
        _ => None,
    });
    let is_setting = |function: &syn::ImplItemFn| {
        let is_internal = |attribute: &syn::Attribute| match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string().contains("__internals"),
            _ => false,
        };
        let gives_self = matches!(
            &function.sig.output,
            syn::ReturnType::Type(_, ty)
                if matches!(&**ty, syn::Type::Path(ty) if ty.path.is_ident("Self"))
        );
        matches!(function.vis, syn::Visibility::Public(_))
            && function.sig.receiver().is_some()
            && gives_self
            && !function.attrs.iter().any(is_internal)
    };
    functions
        .filter(is_setting)
        .map(|function| function.sig.ident.to_string())
        .collect()
}

/// rustfmt leaves long strings, attributes and macros as they are. Expansions are exempt, and so
/// are the files whose lines the compiler's messages count.
#[test]
fn no_line_of_the_sources_is_longer_than_100_columns() {
    let (mut files, mut long) = (0, Vec::new());
    for folder in FOLDERS {
        for path in every_file(&root().join(folder)) {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
            let is_source = name.ends_with(".rs") || name.ends_with(".lua");
            if !is_source || name.ends_with(".expanded.rs") || name.starts_with("tests/ui/") {
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let lines = (1..).zip(text.lines());
            let too_long = lines.filter(|(_, line)| is_too_long(line));
            long.extend(too_long.map(|(number, _)| format!("{name}:{number}")));
        }
    }
    assert!(long.is_empty(), "{long:#?}");
    assert!(files > 500, "{files}");
}

/// A row of a table and a link can't be broken.
fn is_too_long(line: &str) -> bool {
    let unbroken = ["/// |", "//! |", "/// ["].iter();
    let unbroken = unbroken
        .copied()
        .any(|start| line.trim_start().starts_with(start));
    line.chars().count() > 100 && !unbroken
}

fn every_file(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let found = entries.flat_map(|entry| match entry.path() {
        folder if folder.is_dir() => every_file(&folder),
        file => vec![file],
    });
    found.collect()
}

/// A test that can't fail shows nothing.
#[test]
fn a_dead_link_is_found() {
    let page = root().join("README.md");
    let text = "\
        # Title, and `code`\n\
        [file](none.md) [anchor](#none) [label][none] ![picture](none.svg)\n\
        [far](https://example.org/) [heading](#limits) `[code](none)`\n\
        ```text\n[fence](none)\n```\n\
        [defined][here]\n\n[here]: CHANGELOG.md#none\n";
    let found: Vec<String> = links_of(text)
        .into_iter()
        .filter(|link| follow(&page, link).is_err())
        .collect();
    assert_eq!(
        found,
        [
            "none.md",
            "#none",
            "none.svg",
            "CHANGELOG.md#none",
            "[none]"
        ]
    );
    assert!(headings(text).contains("title-and-code"));
    assert_eq!(headings("# A\n# A"), ["a", "a-1"].map(str::to_owned).into());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for page in PAGES {
        let path = root().join(page);
        if path.is_dir() {
            let files = fs::read_dir(path).unwrap().map(|file| file.unwrap().path());
            pages.extend(files.filter(|file| file.extension().is_some_and(|end| end == "md")));
        } else {
            pages.push(path);
        }
    }
    pages
}

/// The targets of the text's links. A label without a definition is a link to `[label]`.
fn links_of(text: &str) -> Vec<String> {
    let (mut links, mut labels, mut defined) = (Vec::new(), Vec::new(), BTreeSet::new());
    for line in prose(text) {
        if let Some((label, target)) = definition(&line) {
            defined.insert(label.to_owned());
            links.push(target.to_owned());
            continue;
        }
        for behind in line.split("](").skip(1) {
            links.extend(behind.split_once(')').map(|(target, _)| target.to_owned()));
        }
        for behind in line.split("][").skip(1) {
            labels.extend(behind.split_once(']').map(|(label, _)| label.to_owned()));
        }
    }
    let undefined = labels.into_iter().filter(|label| !defined.contains(label));
    links.extend(undefined.map(|label| format!("[{label}]")));
    links
}

/// `[label]: target`
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

/// The lines outside of fences, without the code in them.
fn prose(text: &str) -> Vec<String> {
    let (mut is_code, mut lines) = (false, Vec::new());
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line.split('`').step_by(2).collect());
        }
    }
    lines
}

/// Whether the link of this page leads anywhere.
fn follow(page: &Path, link: &str) -> Result<(), String> {
    if link.starts_with("https://") {
        return Ok(());
    }
    if link.starts_with('[') {
        return Err("it has no definition".to_owned());
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap().join(file),
    };
    if !target.exists() {
        return Err(format!("there is no {}", target.display()));
    }
    if !anchor.is_empty() {
        let text = fs::read_to_string(&target).map_err(|error| error.to_string())?;
        if !headings(&text).contains(anchor) {
            return Err(format!("no heading of {} is {anchor}", target.display()));
        }
    }
    Ok(())
}

/// The anchors of its headings, as code hosts make them.
fn headings(text: &str) -> BTreeSet<String> {
    let (mut is_code, mut anchors) = (false, BTreeSet::new());
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || !line.starts_with('#') {
            continue;
        }
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
        let anchor: String = heading.chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        let same = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(same);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}
