//! Programs in Java, beside which tests run: jars by Maven, and workers that are compiled once.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{ChildProcess, left_out};

/// Fetches the jars that a `pom.xml` names, and compiles what stands beside it: `FOLDER FIXTURE
/// OPTION`. In `.ci/run`, it is done while the lints run.
const PREPARE: &str = include_str!("prepare_java.sh");

/// The class path of a fixture's jars and of its worker, in a folder of its own below `target`:
/// with a version of what the fixture is named after, or with that of its `pom.xml`. `None` where
/// neither they nor Maven and a compiler for Java are, which is said.
///
/// # Panics
/// As [`left_out`].
#[must_use]
pub fn java_classpath(target: &Path, fixture: &Path, version: Option<&str>) -> Option<String> {
    let name = fixture.file_name()?.to_str()?;
    let option = version.map_or_else(|| "-q".to_owned(), |version| format!("-D{name}={version}"));
    let folder = target.join(format!("java-{name}{}", version.unwrap_or_default()));
    // Tests in other processes need the same, and Maven's own folder bears one at a time.
    let prepared = Command::new("flock")
        .arg(target.join("java.lock"))
        .args(["sh", "-c", PREPARE, "sh"])
        .args([&folder, fixture])
        .arg(option)
        .stdout(Stdio::null())
        .output()
        .ok();
    let code = prepared
        .as_ref()
        .and_then(|prepared| prepared.status.code());
    if code != Some(0) {
        let said = prepared.map(|prepared| prepared.stderr).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        assert!(code != Some(2), "{name} is not compiled: {said}");
        let first = said.lines().find(|line| !line.trim().is_empty());
        left_out(&format!(
            "it needs a compiler for Java, and Maven with the jars that it fetches: {}",
            first.unwrap_or("javac, or the program flock, is missing")
        ));
        return None;
    }
    let folder = folder.display();
    Some(format!("{folder}/classes:{folder}/*"))
}

/// Starts a class of this class path with these arguments.
#[must_use]
pub fn start_java(classpath: &str, arguments: &[&str]) -> ChildProcess {
    // Whatever the locale is.
    let utf8 = "-Dfile.encoding=UTF-8";
    let mut machine = vec!["-Xmx192m", "-XX:+UseSerialGC", utf8, "-cp", classpath];
    // Without a longer time asked for, it lives for seconds: to optimise its code takes longer.
    let is_long = |(name, _): (std::ffi::OsString, _)| {
        name.to_str().is_some_and(|name| name.ends_with("_SECONDS"))
    };
    if !std::env::vars_os().any(is_long) {
        machine.push("-XX:TieredStopAtLevel=1");
    }
    machine.extend(arguments);
    ChildProcess::start("java", &machine)
}
