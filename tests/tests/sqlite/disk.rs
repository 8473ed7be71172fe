//! The disk is full. A small file system of its own, which needs root.

use std::time::Duration;

use lock_runtime::{LockError, StoreErrorKind};
use lock_testkit::SmallDisk;

use crate::{client, is_free};

#[tokio::test]
async fn on_a_full_disk_requests_are_told_so_and_all_goes_on_when_there_is_space() {
    let Some(disk) = SmallDisk::mounted(1 << 20) else {
        return;
    };
    let url = format!("sqlite://{}/locks.db", disk.path().display());
    let client = client(&url).await;
    let held = client.lock("held").acquire().await.unwrap();
    disk.fill();
    let (guards, error) = disk.until_refused(&client, 10_000).await;
    let LockError::Unavailable { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), StoreErrorKind::ReadOnly, "{error}");
    assert!(error.to_string().contains("is full"), "{error}");
    assert!(held.is_held());
    disk.free();
    let again = client.lock("again").acquire().await.unwrap();
    again.release().await.unwrap();
    held.release().await.unwrap();
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert!(is_free(&client, "held").await);
    client.shutdown(Duration::from_secs(5)).await;
}
