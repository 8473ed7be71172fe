//! `tests/run` on a machine that lacks something.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Where a program of this machine is.
fn program(name: &str) -> String {
    let question = format!("command -v {name}");
    let found = Command::new("sh").args(["-c", &question]).output();
    let found = found.unwrap().stdout;
    String::from_utf8(found).unwrap().trim().to_owned()
}

fn stub(folder: &Path, name: &str, script: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn nothing_is_installed_if_that_is_forbidden() {
    let folder = tempfile::tempdir().unwrap();
    let installed = folder.path().join("installed");
    stub(folder.path(), "cargo", "exit 1");
    for installer in ["apt-get", "brew", "sudo", "env"] {
        stub(
            folder.path(),
            installer,
            &format!(": > {}", installed.display()),
        );
    }
    for needed in ["dirname", "id"] {
        symlink(program(needed), folder.path().join(needed)).unwrap();
    }
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("run");
    let output = Command::new(program("bash"))
        .arg(run)
        .env_clear()
        .env("PATH", folder.path())
        .env("LOCK_TESTS_INSTALL", "no")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("redis-server is missing"), "{said}");
    assert!(said.contains("LOCK_TESTS_INSTALL=no"), "{said}");
    assert!(!installed.exists(), "{said}");
}
