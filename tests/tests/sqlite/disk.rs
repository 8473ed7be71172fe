//! The disk is full. A small file system of its own, which needs root.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lock_runtime::{LockError, StoreErrorKind};
use tempfile::TempDir;

use crate::{client, is_free};

/// A file system in memory.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// `None` for a user who may mount none.
    fn mounted() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(folder.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { folder });
        }
        println!("this user may mount no file system, so that no disk is full");
        None
    }

    fn filler(&self) -> PathBuf {
        self.folder.path().join("filler")
    }

    fn fill(&self) {
        // As far as it goes.
        assert!(fs::write(self.filler(), vec![1; 2 << 20]).is_err());
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

#[tokio::test]
async fn on_a_full_disk_requests_are_told_so_and_all_goes_on_when_there_is_space() {
    let Some(disk) = SmallDisk::mounted() else {
        return;
    };
    let url = format!("sqlite://{}/locks.db", disk.folder.path().display());
    let client = client(&url).await;
    let held = client.lock("held").acquire().await.unwrap();
    disk.fill();
    // The log has some space of its own.
    let mut guards = Vec::new();
    let error = loop {
        let key = format!("{}:{}", guards.len(), "x".repeat(400));
        let request = client.lock(key).wait(Duration::from_millis(100));
        match request.acquire().await {
            Ok(guard) => guards.push(guard),
            Err(error) => break error,
        }
        assert!(guards.len() < 10_000);
    };
    let LockError::Unavailable { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), StoreErrorKind::ReadOnly, "{error}");
    assert!(error.to_string().contains("is full"), "{error}");
    assert!(held.is_held());
    fs::remove_file(disk.filler()).unwrap();
    let again = client.lock("again").acquire().await.unwrap();
    again.release().await.unwrap();
    held.release().await.unwrap();
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert!(is_free(&client, "held").await);
    client.shutdown(Duration::from_secs(5)).await;
}
