//! What is memcached's own: its settings, its memory.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod server;

use std::time::Duration;

use lock_runtime::{LockError, Rate, StoreErrorKind};
use lock_testkit::{Backend, Log, eventually};

use self::server::Memcached;

async fn started(arguments: &[&'static str]) -> Backend {
    Backend::new(Memcached::start_with(arguments).await)
}

#[tokio::test]
async fn what_endangers_locks_is_logged_and_refused_by_strict_checks() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let server = started(&[]).await;
    let client = server.client().await;
    let text = "it evicts locks when its memory is full; start it with `--disable-evictions`";
    eventually("it is logged", async || log.text().contains(text)).await;
    let health = client.health().await.unwrap();
    let findings = &health.servers[0].findings;
    assert!(findings.iter().any(|one| one.to_string() == text));
    match server.builder().strict_checks(true).connect().await {
        Err(LockError::Config { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_cas_numbers_a_taken_lock_is_misconfigured_and_not_overwritten() {
    let server = started(&["-C"]).await;
    let client = server.client().await;
    let held = client.lock("k").acquire().await.unwrap();
    let other = server.client().await;
    match other.lock("k").wait(Duration::ZERO).acquire().await {
        Err(LockError::Unavailable { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::Misconfigured);
            assert!(source.to_string().contains("start it without `-C`"));
        }
        other => panic!("{other:?}"),
    }
    drop(held);
}

#[tokio::test]
async fn a_full_memory_is_out_of_memory_and_the_connection_stays() {
    let server = started(&["--disable-evictions", "-m", "1", "-I", "512k"]).await;
    let client = server.client().await;
    let mut full = None;
    for number in 0..200_000 {
        // So long that none is renewed meanwhile.
        let lock = client
            .lock(format!("{number}"))
            .lease(Duration::from_secs(3600));
        match lock.wait(Duration::ZERO).acquire().await {
            Ok(guard) => std::mem::forget(guard),
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    match full {
        Some(LockError::Unavailable { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::OutOfMemory, "{source}");
        }
        other => panic!("{other:?}"),
    }
    let health = client.health().await.unwrap();
    assert_eq!(health.servers[0].reconnects, 0);
}

#[tokio::test]
async fn what_an_engine_without_messages_and_counts_lacks_is_refused_with_the_way_out() {
    let server = started(&[]).await;
    let client = server.client().await;
    let second = Duration::from_secs(1);
    let held = client.lock("k").acquire().await.unwrap();
    match client.revoke("k", second).await {
        Err(error @ LockError::Config { .. }) => {
            assert!(error.to_string().contains("`force_release`"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let limiter = client.rate_limiter("k", Rate::at_most(1, second));
    match limiter.acquire().await {
        Err(error @ LockError::Config { .. }) => {
            assert!(error.to_string().contains("another engine"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(held.is_held());
}
