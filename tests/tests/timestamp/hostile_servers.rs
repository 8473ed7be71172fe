//! A server without free memory, and values that nobody expects.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{RedisServer, eventually};

use crate::{KEY, client, url};

async fn get(server: &RedisServer) -> Option<String> {
    server.query(&["GET", KEY]).await
}

#[tokio::test]
async fn at_maxmemory_a_lock_is_renewed_kept_and_released_and_none_is_taken() {
    let server = RedisServer::start().await;
    let builder = LockClient::builder().url(url(&server, "ms", "0ms"));
    let client = builder
        .lease(Duration::from_secs(6))
        .connect()
        .await
        .unwrap();
    let renewed = client.lock(KEY).acquire().await.unwrap();
    let kept = client
        .lock("kept")
        .hold_at_least(Duration::from_secs(60))
        .acquire();
    let kept = kept.await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let before = get(&server).await;
    eventually("it is renewed", async || get(&server).await > before).await;
    assert!(renewed.is_held());
    renewed.extend(Duration::from_secs(60)).await.unwrap();
    kept.release().await.unwrap();
    let left: i64 = server.query(&["PTTL", "kept"]).await;
    assert!((30_000..70_000).contains(&left), "{left}");
    let error = client.lock("other").try_acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    renewed.release().await.unwrap();
    assert_eq!(get(&server).await, None);
}

/// A reply of more than 16 MB would end the connection that all renewals share.
#[tokio::test]
async fn of_a_value_of_many_megabytes_only_the_beginning_is_read() {
    let server = RedisServer::start().await;
    let client = client(&server, "ms", "0ms").await;
    let held = client.lock("held").acquire().await.unwrap();
    // A text; and digits, which are a time of these years for who reads them all.
    let zeros = format!("{}.{}", "1".repeat(13), "0".repeat(17 << 20));
    for value in ["anything", &zeros] {
        server.command(&["SET", KEY, value]).await;
        server.command(&["SETRANGE", KEY, "17825792", "0"]).await;
        for error in [
            client.lock(KEY).acquire().await.map(drop).unwrap_err(),
            client.inspect(KEY).await.map(drop).unwrap_err(),
            client.force_release(KEY).await.map(drop).unwrap_err(),
        ] {
            assert!(matches!(error, LockError::KeyConflict { .. }), "{error}");
        }
    }
    held.release().await.unwrap();
}
