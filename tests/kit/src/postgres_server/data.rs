//! The files of a new database.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::program;

/// A folder in which test programs leave such files for one another. `tests/run` makes it.
const SHARED: &str = "LOCK_TESTS_POSTGRES";

/// Makes them, or copies those of another test's server, which takes a tenth of the time. The copy
/// has the identity of the original: only the first server of a process is one.
pub(super) fn make(at: &Path) {
    static IS_COPIED: AtomicBool = AtomicBool::new(false);
    match std::env::var_os(SHARED).map(PathBuf::from) {
        Some(shared) if !IS_COPIED.swap(true, Ordering::Relaxed) => copy(&original(&shared), at),
        _ => init(at),
    }
}

/// The same, with the identity of others, also in this process.
pub(super) fn make_alike(at: &Path) {
    match std::env::var_os(SHARED).map(PathBuf::from) {
        Some(shared) => copy(&original(&shared), at),
        None => init(at),
    }
}

/// Several processes may make it at once. The first that is ready counts.
fn original(shared: &Path) -> PathBuf {
    let original = shared.join("original");
    if !original.exists() {
        let ours = tempfile::tempdir_in(shared).expect("the folder is there");
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(ours.path(), open).expect("the folder is this user's");
        init(&ours.path().join("data"));
        let _ = fs::rename(ours.path().join("data"), &original);
    }
    original
}

fn copy(original: &Path, at: &Path) {
    let mut copies = Command::new("cp");
    copies.arg("-Rp").arg(original).arg(at);
    let copied = copies.status().expect("cp is installed");
    assert!(copied.success(), "cp: {copied}");
}

fn init(at: &Path) {
    let made = program("initdb")
        .args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"])
        .arg("-D")
        .arg(at)
        .stdout(Stdio::null())
        .status()
        .expect("initdb is installed");
    assert!(made.success(), "initdb: {made}");
}
