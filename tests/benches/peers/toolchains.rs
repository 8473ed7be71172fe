//! Builds the other libraries' programs, each with its own tools, in folders below the target
//! folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::plan::Toolchain;

/// The first argument of this program as a library's program.
pub(crate) const WORKER: &str = "worker";
/// The same, if it is to count its allocations.
pub(crate) const COUNTING_WORKER: &str = "counting-worker";

/// The words that start the program, or the reason why there is none.
pub(crate) fn build(toolchain: Toolchain) -> Result<Vec<String>, String> {
    let target = target_folder()?;
    match toolchain {
        Toolchain::Ours => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            Ok(vec![word(&program), WORKER.to_owned()])
        }
        Toolchain::Rust => rust(&target.join("rust")),
        Toolchain::Java => java(&target.join("redisson")),
        Toolchain::Go => go(&target.join("go")),
        Toolchain::Python => python(&target.join("python")),
    }
}

/// The words that start it as a program that counts its allocations, if it can.
pub(crate) fn counting(toolchain: Toolchain, program: &[String]) -> Option<Vec<String>> {
    let words = vec![program[0].clone(), COUNTING_WORKER.to_owned()];
    (toolchain == Toolchain::Ours).then_some(words)
}

fn rust(target: &Path) -> Result<Vec<String>, String> {
    run(Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(source("rust").join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target))?;
    Ok(vec![word(&target.join("release/lock-peers"))])
}

fn java(target: &Path) -> Result<Vec<String>, String> {
    run(Command::new("mvn")
        .args(["--quiet", "--batch-mode", "--file"])
        .arg(source("redisson").join("pom.xml"))
        .arg(format!("-Dbuild.folder={}", target.display()))
        .arg("package"))?;
    let classes = format!("{0}/classes:{0}/dependencies/*", target.display());
    Ok(["java", "-cp", &classes, "Peer"]
        .map(str::to_owned)
        .to_vec())
}

fn go(target: &Path) -> Result<Vec<String>, String> {
    let program = target.join("locks");
    run(Command::new("go")
        .args(["build", "-C"])
        .arg(source("go"))
        .arg("-o")
        .arg(&program)
        .arg("."))?;
    Ok(vec![word(&program)])
}

fn python(target: &Path) -> Result<Vec<String>, String> {
    let program = target.join("bin/python");
    if !program.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(target))?;
    }
    run(Command::new(&program)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ])
        .arg(source("python").join("requirements.txt")))?;
    let script = source("python").join("peer.py");
    Ok(vec![word(&program), word(&script)])
}

fn source(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("peers")
        .join(folder)
}

/// `target/peers`, found from the place of this program below `target`.
fn target_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // target/release/deps/peers-…
    let target = program.ancestors().nth(3).ok_or("no target folder")?;
    Ok(target.join("peers"))
}

fn word(path: &Path) -> String {
    path.display().to_string()
}

/// Its output is shown only when it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    eprintln!("building with {name}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{name} can't be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&text)))
}
