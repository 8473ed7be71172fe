//! The end of a client. It has a process of its own, because it counts the process's threads.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use lock_runtime::LockClient;
use lock_testkit::{Proxy, RedisServer, eventually};

/// Threads of clients in this process; `None` where the system doesn't tell.
fn client_threads() -> Option<usize> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    Some(names.filter(|name| name.trim() == "lock-runtime").count())
}

#[tokio::test]
async fn the_last_clone_takes_thread_and_connection_with_it() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = LockClient::builder()
        .url(proxy.url())
        .connect()
        .await
        .unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    let second = client.clone();
    drop(client);
    drop(second);
    assert!(guard.is_held(), "the guard keeps both");
    assert_eq!(proxy.open_connections(), 1);
    assert!(client_threads().is_none_or(|threads| threads == 1));
    drop(guard);
    eventually("the connection is closed", async || {
        proxy.open_connections() == 0
    })
    .await;
    eventually("the thread has ended", async || {
        client_threads().is_none_or(|threads| threads == 0)
    })
    .await;
    assert_eq!(
        server.keys("*").await,
        Vec::<String>::new(),
        "and the lock was released before"
    );
}
