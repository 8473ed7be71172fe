//! A server without free memory, and values that nobody expects.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{RedisServer, eventually};

use crate::{KEY, url};

async fn get(server: &RedisServer) -> Option<String> {
    server.query(&["GET", KEY]).await
}

#[tokio::test]
async fn at_maxmemory_a_lock_is_renewed_kept_and_released_and_none_is_taken() {
    let server = RedisServer::start().await;
    let builder = LockClient::builder().url(url(&server, "ms", "0ms"));
    let client = builder
        .lease(Duration::from_millis(1500))
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
