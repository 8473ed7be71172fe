//! The real ShedLock from Maven, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lock_testkit::ChildProcess;
use tokio::sync::OnceCell;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/shedlock");
const LIBRARY: &str = "shedlock-core-7.10.1.jar";

/// What stands in the classpath: ShedLock's jars, and the worker. `None` where neither they nor
/// Maven and a compiler for Java are.
async fn classpath() -> Option<&'static str> {
    static ONE: OnceCell<Option<String>> = OnceCell::const_new();
    let made = ONE.get_or_init(async || {
        let made = tokio::task::spawn_blocking(make_classpath).await;
        made.unwrap_or(None)
    });
    made.await.as_deref()
}

fn make_classpath() -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shedlock-jars");
    let has_compiler = run("javac", &["-version"]);
    let has_jars = folder.join(LIBRARY).exists();
    if !has_compiler || !(has_jars || fetch(&folder)) {
        return None;
    }
    // Of this process: others may compile at the same time.
    let classes = folder.join(format!("classes-{}", std::process::id()));
    let jars = folder.join("*");
    let compiled = run(
        "javac",
        &[
            "-cp",
            jars.to_str()?,
            "-d",
            classes.to_str()?,
            &format!("{FOLDER}/ShedlockWorker.java"),
        ],
    );
    assert!(compiled, "the worker in Java does not compile");
    Some(format!("{}:{}", classes.display(), jars.display()))
}

fn fetch(folder: &PathBuf) -> bool {
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
    run("mvn", &arguments)
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let done = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

/// A process in Java that runs jobs under ShedLock, with this provider. `None` where there is no
/// Java.
pub(crate) async fn worker(provider: &[String]) -> Option<ChildProcess> {
    let Some(classpath) = classpath().await else {
        println!("left out: it needs Maven and a compiler for Java");
        return None;
    };
    let mut arguments = vec!["-Xmx128m", "-cp", classpath, "ShedlockWorker"];
    arguments.extend(provider.iter().map(String::as_str));
    let mut worker = ChildProcess::start("java", &arguments);
    worker.wait_within(Duration::from_secs(60), "ready").await;
    Some(worker)
}
