//! The real ShedLock from Maven, in a process of its own.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use lock_testkit::{ChildProcess, folder_once, left_out, succeeds};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/shedlock");

/// What stands in the classpath: ShedLock's jars, and the worker. `None` where neither they nor
/// Maven and a compiler for Java are.
fn classpath() -> Option<String> {
    if !succeeds("javac", &["-version"]) {
        return None;
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let jars = target.join("shedlock-jars-7.10.1");
    let has_jars = folder_once(&jars, |folder| {
        let pom = format!("{FOLDER}/pom.xml");
        let output = format!("-DoutputDirectory={}", folder.display());
        let arguments = [
            "-q",
            "-B",
            "-f",
            &pom,
            "dependency:copy-dependencies",
            &output,
        ];
        succeeds("mvn", &arguments)
    });
    if !has_jars {
        return None;
    }
    let jars = format!("{}/*", jars.display());
    let source = format!("{FOLDER}/ShedlockWorker.java");
    let changed = std::fs::metadata(&source).and_then(|file| file.modified());
    let changed = changed.unwrap().duration_since(UNIX_EPOCH).unwrap();
    let classes = target.join(format!("shedlock-worker-{}", changed.as_nanos()));
    let compiled = folder_once(&classes, |folder| {
        succeeds(
            "javac",
            &["-cp", &jars, "-d", &folder.to_string_lossy(), &source],
        )
    });
    assert!(compiled, "the worker in Java does not compile");
    Some(format!("{}:{jars}", classes.display()))
}

/// A process in Java that runs jobs under ShedLock, with this provider. `None` where there is no
/// Java.
pub(crate) async fn worker(provider: &[String]) -> Option<ChildProcess> {
    let Some(classpath) = classpath() else {
        left_out("it needs Maven and a compiler for Java");
        return None;
    };
    let mut arguments = vec!["-Xmx128m", "-cp", &classpath, "ShedlockWorker"];
    arguments.extend(provider.iter().map(String::as_str));
    let mut worker = ChildProcess::start("java", &arguments);
    worker.wait_within(Duration::from_secs(60), "ready").await;
    Some(worker)
}
