//! Connecting: at once, lazily, over a socket, to another database, with a password.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::RedisServer;

use crate::{SLACK, client, timed, unavailable};

#[tokio::test]
async fn connecting_without_a_server_fails_within_the_connect_timeout() {
    let server = RedisServer::start().await;
    let url = server.url();
    server.kill();
    let (result, elapsed) = timed(LockClient::builder().url(&url).connect()).await;
    assert_eq!(unavailable(result), StoreErrorKind::Disconnected);
    assert!(elapsed <= Duration::from_secs(1) + SLACK, "{elapsed:?}");
}

#[tokio::test]
async fn connecting_to_a_frozen_server_says_so_within_the_connect_timeout() {
    let server = RedisServer::start().await;
    server.pause();
    let connecting = LockClient::builder()
        .url(server.url())
        .connect_timeout(Duration::from_millis(300))
        .connect();
    let (result, elapsed) = timed(connecting).await;
    assert_eq!(unavailable(result), StoreErrorKind::Timeout);
    assert!(elapsed <= Duration::from_millis(300) + SLACK, "{elapsed:?}");
}

#[tokio::test]
async fn a_lazy_client_starts_before_its_server() {
    let server = RedisServer::start().await;
    let url = server.url();
    server.kill();
    // On a busy machine, the server takes its time to start.
    let builder = LockClient::builder().url(url);
    let builder = builder.unavailable_after(Duration::from_secs(30));
    let client = builder.connect_lazy().unwrap();
    unavailable(client.lock("k").try_acquire().await);
    let waiting = tokio::spawn(client.lock("k").wait(Duration::from_secs(20)).acquire());
    server.restart().await;
    assert!(waiting.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_bad_url_is_a_config_error_at_connect() {
    for url in [
        "",
        "localhost:6379",
        "redis://host:port",
        "http://localhost",
        "redis://app:12#word@localhost",
    ] {
        for result in [
            LockClient::builder().url(url).connect().await,
            LockClient::builder().url(url).connect_lazy(),
        ] {
            assert!(matches!(result, Err(LockError::Config { .. })), "{url}");
        }
    }
    assert!(matches!(
        LockClient::builder().connect().await,
        Err(LockError::Config { .. })
    ));
    let memory = LockClient::builder()
        .url("memory:")
        .connect()
        .await
        .unwrap();
    assert!(memory.lock("k").acquire().await.unwrap().is_held());
}

#[tokio::test]
async fn sockets_databases_users_and_passwords_work() {
    let server = RedisServer::builder()
        .unix_socket(true)
        .password("secret")
        .start()
        .await;
    server
        .command(&["ACL", "SETUSER", "app", "on", ">word", "~*", "&*", "+@all"])
        .await;
    let socket = format!(
        "redis+unix://{}?pass=secret",
        server.socket_path().display()
    );
    let over_socket = client(&socket).await;
    let host = format!("127.0.0.1:{}", server.port());
    let database = client(&format!("redis://app:word@{host}/3")).await;
    let same_database = client(&format!("redis://:secret@{host}/3")).await;
    let _held = database.lock("k").acquire().await.unwrap();
    assert!(
        over_socket.lock("k").try_acquire().await.unwrap().is_some(),
        "another database"
    );
    assert!(
        same_database
            .lock("k")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_found_by_its_name() {
    let server = RedisServer::start().await;
    let client = client(&format!("redis://localhost:{}/", server.port())).await;
    // Later calls go over the connection of this runtime.
    for _ in 0..20 {
        client.lock("k").run(async {}).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let nowhere = client_of("redis://no-such-host.invalid/").await;
    assert!(
        matches!(nowhere, Err(LockError::Unavailable { .. })),
        "{nowhere:?}"
    );
}

async fn client_of(url: &str) -> Result<LockClient, LockError> {
    let builder = LockClient::builder().url(url);
    builder
        .connect_timeout(Duration::from_secs(2))
        .connect()
        .await
}
