//! Programs of other libraries, built with their own tools in folders below the target folder. They
//! get an order as this program does, and answer as it does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The words that start the program for this library, before its order. `None`: its tools are
/// missing, or it can't be built.
pub(crate) fn program(library: &str) -> Option<Vec<String>> {
    let own = std::env::current_exe().ok()?;
    match library {
        "curator" => curator(&target(&own)?.join("curator")),
        "concurrency" => go(&target(&own)?.join("etcd-go")),
        _ => Some(vec![own.display().to_string(), "--worker".to_owned()]),
    }
}

/// `target/peers`, found from the place of this program below `target`.
fn target(own: &Path) -> Option<PathBuf> {
    Some(own.ancestors().nth(3)?.join("peers"))
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn curator(target: &Path) -> Option<Vec<String>> {
    if !target.join("curator-recipes-5.7.1.jar").exists() {
        let pom = source("../fixtures/curator/pom.xml");
        run(Command::new("mvn")
            .args(["-q", "-B", "dependency:copy-dependencies", "-f"])
            .arg(pom)
            .arg(format!("-DoutputDirectory={}", target.display())))?;
    }
    let jars = format!("{}/*", target.display());
    run(Command::new("javac")
        .args(["-cp", &jars, "-d"])
        .arg(target)
        .arg(source("engines/curator/CuratorLocks.java")))?;
    let classes = format!("{}:{jars}", target.display());
    Some(
        ["java", "-cp", &classes, "CuratorLocks"]
            .map(str::to_owned)
            .to_vec(),
    )
}

fn go(target: &Path) -> Option<Vec<String>> {
    run(Command::new("go")
        .args(["build", "-C"])
        .arg(source("engines/go"))
        .arg("-o")
        .arg(target)
        .arg("."))?;
    Some(vec![target.display().to_string()])
}

/// Its output is shown only when it fails.
fn run(command: &mut Command) -> Option<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => return Some(()),
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            eprintln!("{name} failed: {}", String::from_utf8_lossy(&text));
        }
        Err(error) => eprintln!("{name} can't be run: {error}"),
    }
    None
}
