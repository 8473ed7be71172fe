//! A client in memory whose thread can't be started. Another process has none: this program,
//! started again for the "test" [`program`].

use std::process::Command;

use lock_runtime::{LockClient, LockError};
use tokio::runtime::Builder;

const FEW_FILES: &str = "PROGRAM_HAS_FEW_FILES";

#[cfg(unix)]
#[test]
fn a_client_whose_thread_can_not_be_started_says_so_at_each_call() {
    // Room for one file more than the three that each process has.
    let with_few = "ulimit -n 4; exec \"$0\" --exact no_thread::program --nocapture";
    let ended = Command::new("bash")
        .args(["-c", with_few])
        .arg(std::env::current_exe().unwrap())
        .env(FEW_FILES, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}");
    assert!(
        said.contains("the client's thread can't be started"),
        "{said}"
    );
    assert!(said.contains("`ulimit -n`"), "{said}");
}

/// Not a test: what the other process does.
#[test]
fn program() {
    if std::env::var_os(FEW_FILES).is_none() {
        return;
    }
    let client = LockClient::in_memory();
    let runtime = Builder::new_current_thread().build().unwrap();
    let refused = runtime.block_on(client.lock("k").acquire()).unwrap_err();
    assert!(matches!(refused, LockError::Config { .. }), "{refused:?}");
    println!("{refused}");
}
