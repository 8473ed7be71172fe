//! Other languages' packages, by their ordinary clients, for clients of other libraries.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::fcntl::{Flock, FlockArg};

/// Makes a folder, once for all processes, of which the others wait: `make` fills another one,
/// which then gets this name. False if that fails.
pub(crate) fn folder_once(folder: &Path, make: impl FnOnce(&Path) -> bool) -> bool {
    let beside = |ending: &str| {
        let mut path = folder.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    if folder.exists() {
        return true;
    }
    let file = File::create(beside(".lock")).expect("the folder above is there");
    // Until this function's end, however the process ends.
    let _first = Flock::lock(file, FlockArg::LockExclusive).expect("nobody has it for ever");
    if folder.exists() {
        return true;
    }
    let unfinished = beside("-unfinished");
    // Of a process that was killed.
    let _ = std::fs::remove_dir_all(&unfinished);
    make(&unfinished) && std::fs::rename(&unfinished, folder).is_ok()
}

/// Runs a program to its end, silently. False if it is not there or fails.
#[must_use]
pub(crate) fn succeeds(program: impl AsRef<Path>, arguments: &[&str]) -> bool {
    let done = Command::new(program.as_ref())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

/// Says that a test is left out for what this machine lacks.
///
/// # Panics
/// With `LOCK_TESTS_ALL=1`, as `.ci/run` sets it: then nothing may be left out unseen.
pub fn left_out(why: &str) {
    println!("left out: {why}");
    let all = std::env::var_os("LOCK_TESTS_ALL");
    assert!(
        all.is_none_or(|all| all != "1"),
        "with LOCK_TESTS_ALL=1, no test is left out: {why}"
    );
}

/// A Python with these packages (`redis==8.1.0`), in a folder of its own below `target`. `None`
/// where there is no Python, or they can't be had.
#[must_use]
pub fn python_with(target: &Path, packages: &[&str]) -> Option<PathBuf> {
    let name = format!("python-{}", packages.join("-").replace('=', ""));
    let folder = target.join(name);
    let is_made = folder_once(&folder, |folder| {
        let folder_name = folder.to_string_lossy();
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        succeeds("python3", &["-m", "venv", &folder_name])
            && succeeds(folder.join("bin/python"), &[&install, packages].concat())
    });
    is_made.then(|| folder.join("bin/python"))
}
