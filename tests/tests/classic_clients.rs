//! Our client and a client of the classic recipe (SET NX PX, compare and delete) exclude each other
//! on one key.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{ClassicLibrary, RedisServer};

/// What `redis-cli` prints.
fn redis_cli(server: &RedisServer, words: &[&str]) -> String {
    let port = server.port().to_string();
    let output = Command::new("redis-cli")
        .args(["-p", &port])
        .args(words)
        .output()
        .expect("redis-cli is installed");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

const COMPARE_AND_DELETE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
     return redis.call('del', KEYS[1]) else return 0 end";

#[tokio::test]
async fn a_classic_client_and_ours_exclude_each_other_in_both_orders() {
    let server = RedisServer::start().await;
    // The empty namespace shares key names with existing code.
    let client = LockClient::builder()
        .url(server.url())
        .namespace("")
        .connect()
        .await
        .unwrap();
    let set = ["SET", "stock:42", "classic", "NX", "PX", "60000"];

    assert_eq!(redis_cli(&server, &set), "OK");
    assert!(
        client
            .lock("stock:42")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    let busy = client
        .lock("stock:42")
        .wait(Duration::from_millis(50))
        .acquire()
        .await;
    assert!(matches!(busy, Err(LockError::Busy { .. })));
    assert_eq!(
        client.inspect("stock:42").await.unwrap().holder.as_deref(),
        Some("classic")
    );
    // A classic client hands nothing over: the waiter looks again by itself.
    let waiting = tokio::spawn(client.lock("stock:42").acquire());
    lock_testkit::eventually("it waits", async || {
        client.inspect("stock:42").await.unwrap().waiting == 1
    })
    .await;
    assert_eq!(
        redis_cli(
            &server,
            &["EVAL", COMPARE_AND_DELETE, "1", "stock:42", "classic"]
        ),
        "1"
    );
    let ours = waiting.await.unwrap().unwrap();

    assert_eq!(redis_cli(&server, &set), "");
    assert_eq!(
        redis_cli(
            &server,
            &["EVAL", COMPARE_AND_DELETE, "1", "stock:42", "classic"]
        ),
        "0"
    );
    assert!(ours.is_held());
    ours.release().await.unwrap();
    assert_eq!(redis_cli(&server, &set), "OK");
}

#[tokio::test]
async fn a_classic_lock_without_a_lease_is_busy_and_not_an_error() {
    let server = RedisServer::start().await;
    let client = LockClient::builder()
        .url(server.url())
        .namespace("")
        .connect()
        .await
        .unwrap();
    assert_eq!(redis_cli(&server, &["SET", "k", "for ever"]), "OK");
    let busy = client
        .lock("k")
        .wait(Duration::from_millis(50))
        .acquire()
        .await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    assert_eq!(client.inspect("k").await.unwrap().remaining, None);
    assert!(client.force_release("k").await.unwrap());
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
}

/// The other libraries, and with their own pauses: `bash tests/long/run classic`.
#[tokio::test]
async fn redis_py_and_ours_take_turns_on_one_key_and_never_at_once() {
    let (lasts, pause) = (Duration::from_secs(5), Duration::from_millis(10));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Two tasks of one client hand the lock off; between two clients the store hands it over.
    for (clients, tasks) in [(1, 1), (1, 2), (2, 2)] {
        let server = RedisServer::start().await;
        let mut ours = Vec::new();
        for _ in 0..clients {
            let client = LockClient::builder().url(server.url()).namespace("");
            let client = client.connect().await.unwrap();
            ours.extend(vec![client; tasks]);
        }
        let beside = ClassicLibrary::RedisPy.beside(&ours, &server, lasts, Some(pause), target);
        let Some(turns) = beside.await else {
            return;
        };
        println!("{clients} clients with {tasks} tasks: {turns}");
        assert!(turns.of_time() >= 0.2, "{clients}, {tasks}: {turns}");
    }
}
