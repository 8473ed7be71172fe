//! `LockClient::stats`, and what a guard says about its time.

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{Log, RedisServer, eventually};

use crate::observed_at;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_guard_knows_how_long_it_waited_and_how_long_it_is_held() {
    let client = LockClient::in_memory_paused();
    let first = client.lock("k").acquire().await.unwrap();
    assert_eq!(first.waited(), Duration::ZERO);
    let waits = tokio::spawn(client.lock("k").acquire());
    tokio::time::sleep(3 * SECOND).await;
    let stats = client.stats();
    assert_eq!((stats.held, stats.waiting), (1, 1));
    assert_eq!(stats.longest_waiting, Some(3 * SECOND));
    assert_eq!(first.held_for(), 3 * SECOND);
    first.release().await.unwrap();
    let second = waits.await.unwrap().unwrap();
    assert_eq!(second.waited(), 3 * SECOND);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(second.held_for(), 2 * SECOND);
    // A nested guard has its own times.
    let nested = second.scope(client.lock("k").acquire()).await.unwrap();
    assert_eq!(
        (nested.waited(), nested.held_for()),
        (Duration::ZERO, Duration::ZERO)
    );
    assert_eq!(client.stats().longest_waiting, None);
}

#[tokio::test]
async fn stats_work_while_the_store_is_down() {
    let server = RedisServer::start().await;
    let (client, told) = observed_at(&server).await;
    let guard = client.lock("k").acquire().await.unwrap();
    assert!(client.stats().connected && client.stats().since_last_answer.is_some());
    server.kill();
    told.eventually("disconnected").await;
    let waits = tokio::spawn(client.lock("other").wait(60 * SECOND).acquire());
    eventually("it waits", async || client.stats().waiting == 1).await;
    let stats = client.stats();
    assert!(!stats.connected && stats.held == 1, "{stats:?}");
    assert!(stats.longest_waiting.is_some(), "{stats:?}");
    let since = stats.since_last_answer.unwrap();
    assert!(waits.await.unwrap().unwrap_err().is_unavailable());
    let stats = client.stats();
    assert_eq!((stats.granted_by_store, stats.unavailable), (1, 1));
    assert_eq!(stats.waiting, 0);
    assert!(stats.since_last_answer.unwrap() > since);
    drop(guard);
    eventually("the release is tried", async || {
        client.stats().release_failures == 1
    })
    .await;
    assert_eq!(client.stats().undoing, 1);
}

#[tokio::test]
async fn a_client_that_was_shut_down_is_not_connected() {
    let server = RedisServer::start().await;
    let (client, _) = observed_at(&server).await;
    assert!(client.stats().connected);
    client.shutdown(Duration::ZERO).await;
    assert!(!client.stats().connected);
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_renewed_for_long_is_logged_once() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let subscriber = subscriber.with_writer(move || writer.clone());
    let _logs = tracing::subscriber::set_default(subscriber.finish());
    let client = LockClient::in_memory_paused();
    let long = client.lock("long").acquire().await.unwrap();
    let logged = || log.text().matches("held for longer than expected").count();
    tokio::time::sleep(290 * SECOND).await;
    assert_eq!(logged(), 0, "{}", log.text());
    tokio::time::sleep(300 * SECOND).await;
    assert_eq!(logged(), 1, "{}", log.text());
    assert!(log.text().contains("key=\"long\""), "{}", log.text());
    long.release().await.unwrap();
}
