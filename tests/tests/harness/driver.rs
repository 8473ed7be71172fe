//! The driver of `tests/run` ends a test that hangs, with what it started. The test that hangs is
//! one of this program, started again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

const FILE: &str = "HANGING_FILE";
/// Long enough for a process that starts another.
const LIMIT: &str = "5";

/// Not a test: it starts a process that holds its output open, and waits for ever.
#[test]
fn hang() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let mut started = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    fs::write(file, started.id().to_string()).unwrap();
    started.wait().unwrap();
}

/// What the driver prints about these tests of this program, if cargo called the program so.
fn drive(program: &str, folder: &Path, filters: &[&str]) -> (Option<i32>, String) {
    let messages = folder.join("messages");
    let message = serde_json::json!({
        "profile": { "test": true },
        "executable": std::env::current_exe().unwrap(),
        "manifest_path": concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        "package_id": "path+file:///work/tests#lock-tests@0.1.0",
        "target": { "name": program },
    });
    fs::write(&messages, message.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_run-tests"))
        .args(["--jobs", "2", "--limit", LIMIT, "--times"])
        .arg(folder.join("times"))
        .arg(&messages)
        .args(filters)
        .env(FILE, folder.join("hanging"))
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

/// Whether the process that the hanging test started runs. Ended, it may wait to be reaped.
fn is_running(folder: &Path) -> bool {
    let started = fs::read_to_string(folder.join("hanging")).unwrap();
    let state = Command::new("ps")
        .args(["-o", "stat=", "-p", &started])
        .output();
    let state = String::from_utf8(state.unwrap().stdout).unwrap();
    !state.trim().is_empty() && !state.contains('Z')
}

async fn assert_started_is_gone(folder: &Path) {
    eventually("what it started has ended", async || !is_running(folder)).await;
}

#[tokio::test]
async fn a_test_that_hangs_is_ended_with_what_it_started_and_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let other = "eventually_gives_up_and_names_its_caller";
    let (code, said) = drive("harness", folder.path(), &["driver::hang", other]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("lock-tests::harness::driver::hang: did not end within 5 s\n"),
        "{said}"
    );
    assert!(
        said.contains("1 tests of 1 programs passed") && said.contains(" 1 failed"),
        "{said}"
    );
    assert_started_is_gone(folder.path()).await;
}

#[tokio::test]
async fn a_whole_program_that_hangs_in_one_test_is_ended_too() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = drive("conformance", folder.path(), &["driver::hang"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("lock-tests::conformance: ended no test within 5 s\n"),
        "{said}"
    );
    assert_started_is_gone(folder.path()).await;
}
