//! Somebody takes the files away.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use lock_runtime::observe::{Event, What};
use lock_runtime::{LockClient, LockError, LostReason};
use lock_testkit::{SqliteFile, eventually};

use crate::{AT_ONCE, client, take, until_waiting};

#[tokio::test]
async fn without_the_sockets_a_waiting_request_asks_again() {
    let file = SqliteFile::new();
    let (holder, waiter) = (client(&file.url()).await, client(&file.url()).await);
    let held = holder.lock("k").acquire().await.unwrap();
    let waits = tokio::spawn(async move { take(&waiter, "k").await });
    until_waiting(&holder, "k", 1).await;
    let mut sockets = 0;
    for entry in fs::read_dir(file.folder().join("locks.db-clients")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "sock") {
            fs::remove_file(path).unwrap();
            sockets += 1;
        }
    }
    assert_eq!(sockets, 2);
    held.release().await.unwrap();
    let released = std::time::Instant::now();
    waits.await.unwrap();
    assert!(released.elapsed() < AT_ONCE, "{:?}", released.elapsed());
}

#[tokio::test]
async fn in_a_folder_whose_path_is_too_long_for_sockets_locks_work() {
    let file = SqliteFile::new();
    let folder = file.folder().join("x".repeat(120));
    fs::create_dir(&folder).unwrap();
    let url = format!("sqlite://{}/locks.db", folder.display());
    let (holder, waiter) = (client(&url).await, client(&url).await);
    let held = holder.lock("k").acquire().await.unwrap();
    let waits = tokio::spawn(async move { take(&waiter, "k").await });
    until_waiting(&holder, "k", 1).await;
    held.release().await.unwrap();
    let released = std::time::Instant::now();
    waits.await.unwrap();
    assert!(released.elapsed() < AT_ONCE, "{:?}", released.elapsed());
}

/// A client whose file is missing may live.
#[tokio::test]
async fn a_client_whose_lock_file_was_deleted_keeps_its_holds() {
    let file = SqliteFile::new();
    let (holder, other) = (client(&file.url()).await, client(&file.url()).await);
    let held = holder.lock("k").acquire().await.unwrap();
    fs::remove_dir_all(file.folder().join("locks.db-clients")).unwrap();
    let busy = other.lock("k").wait(Duration::from_millis(300));
    let busy = busy.acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    held.release().await.unwrap();
    take(&other, "k").await;
}

/// Whoever opens the new file does not know the holds in the old one.
#[tokio::test]
async fn when_the_file_is_replaced_its_clients_lose_their_holds_and_go_on_in_the_new_one() {
    let file = SqliteFile::new();
    let open = Arc::new(AtomicI32::new(0));
    let counts = Arc::clone(&open);
    let builder = LockClient::builder().url(file.url());
    let builder = builder.observer(move |event: &Event<'_>| {
        counts.fetch_add(
            match event.what {
                What::Connected { .. } => 1,
                What::Disconnected { .. } => -1,
                _ => 0,
            },
            Ordering::SeqCst,
        );
    });
    let client = builder.connect().await.unwrap();
    let held = client.lock("k").lease(Duration::from_secs(1));
    let held = held.renew(true).acquire().await.unwrap();
    for name in ["locks.db", "locks.db-wal", "locks.db-shm"] {
        fs::remove_file(file.folder().join(name)).unwrap();
    }
    tokio::time::timeout(AT_ONCE, held.lost()).await.unwrap();
    let lost = held.release().await;
    let gone = matches!(
        &lost,
        Err(LockError::Lost {
            reason: LostReason::Gone,
            ..
        })
    );
    assert!(gone, "{lost:?}");
    let again = client.lock("k").acquire().await.unwrap();
    assert_eq!(file.leftovers(), 1, "in the new file");
    assert_eq!(open.load(Ordering::SeqCst), 1, "one file is open");
    again.release().await.unwrap();
    eventually("it is free", async || file.leftovers() == 0).await;
}
