//! A disk that can be full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lock_runtime::{Guard, LockClient, LockError};
use tempfile::TempDir;

use crate::packages::left_out;

/// A small file system in memory, which is unmounted with this value.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
    bytes: usize,
}

impl SmallDisk {
    /// A disk of this many bytes. `None`, and the test is [`left_out`], for a user who may mount
    /// none.
    ///
    /// # Panics
    /// If there can be no temporary folder, and as [`left_out`] does.
    #[must_use]
    pub fn mounted(bytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(folder.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { folder, bytes });
        }
        left_out("this user may mount no file system, so that no disk is full");
        None
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Moves a folder here. In its place is a link then.
    ///
    /// # Panics
    /// If it can't.
    pub fn take_in(&self, folder: &Path) {
        let here = self.folder.path().join("data");
        let copied = Command::new("cp").arg("-r").arg(folder).arg(&here).status();
        assert!(copied.is_ok_and(|status| status.success()), "it has space");
        fs::remove_dir_all(folder).expect("it was copied");
        std::os::unix::fs::symlink(here, folder).expect("a link");
    }

    fn filler(&self) -> PathBuf {
        self.folder.path().join("filler")
    }

    /// Leaves no space.
    ///
    /// # Panics
    /// If there is too much.
    pub fn fill(&self) {
        // As far as it goes.
        let all = vec![1; self.bytes + 1];
        assert!(fs::write(self.filler(), all).is_err(), "it has more space");
    }

    /// Takes locks until one is refused: files have some space of their own. All of them, and the
    /// refusal.
    ///
    /// # Panics
    /// If this many are granted.
    pub async fn until_refused(&self, client: &LockClient, most: usize) -> (Vec<Guard>, LockError) {
        let mut guards = Vec::new();
        while guards.len() < most {
            let key = format!("{}:{}", guards.len(), "x".repeat(400));
            let request = client.lock(key).wait(Duration::from_millis(100));
            match request.acquire().await {
                Ok(guard) => guards.push(guard),
                Err(error) => return (guards, error),
            }
        }
        panic!("{most} locks were granted on a full disk");
    }

    /// Ends that.
    ///
    /// # Panics
    /// If it was not [full](Self::fill).
    pub fn free(&self) {
        fs::remove_file(self.filler()).expect("it was full");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount")
            .arg("--lazy")
            .arg(self.folder.path())
            .status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}
