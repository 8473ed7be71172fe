//! What is logged about a request that waits for long: once, with the holder and the number of
//! requests ahead.

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{Log, RedisServer, eventually};

async fn client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url);
    let builder = builder.warn_after(Duration::from_millis(300));
    builder.connect().await.unwrap()
}

/// How often it was logged.
fn told(log: &Log) -> usize {
    log.text().matches("still waits for its lock").count()
}

#[tokio::test]
async fn a_long_wait_is_logged_once_with_the_holder_and_the_number_ahead() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = RedisServer::start().await;
    let (ours, another) = (client(&server.url()).await, client(&server.url()).await);
    let held = another.lock("k").acquire().await.unwrap();
    let both = async || {
        let request = || ours.lock("k").wait(Duration::from_secs(3)).acquire();
        let (first, second) = (request(), request());
        drop(tokio::join!(first, second));
    };
    both().await;
    assert_eq!(told(&log), 2, "{}", log.text());
    for word in [
        "key=\"k\"",
        "which is held by ",
        "ahead_in_this_process=0",
        "ahead_in_this_process=1",
    ] {
        assert!(log.text().contains(word), "{word}: {}", log.text());
    }
    held.release().await.unwrap();
    let held = ours.lock("k").acquire().await.unwrap();
    both().await;
    assert!(
        log.text().contains("which is held by this very client"),
        "{}",
        log.text()
    );
    held.release().await.unwrap();
    server.command(&["SET", "lock:k", "theirs"]).await;
    both().await;
    let foreign = "which is held by a client that is not this library";
    assert!(log.text().contains(foreign), "{}", log.text());
    assert_eq!(told(&log), 6, "{}", log.text());
    eventually("no request waits", async || {
        ours.health().await.unwrap().waiting == 0
    })
    .await;
}
