//! A client that is copied together with its process or its machine.

use lock_testkit::{ChildProcess, RedisServer, eventually};

use crate::client;

#[tokio::test]
async fn a_child_process_is_refused_at_once_and_takes_nothing_from_its_parent() {
    let server = RedisServer::start().await;
    let program = env!("CARGO_BIN_EXE_forking-worker");
    let worker = ChildProcess::start(program, &[&server.url()]);
    let (status, events) = worker.finish().await;
    assert!(status.success(), "{events:?}");
    let said: Vec<_> = events.iter().map(|event| event.text.as_str()).collect();
    let refused = [
        "try",
        "acquire",
        "several",
        "latch",
        "rate",
        "inspect",
        "health",
        "extend",
        "downgrade",
        "release",
    ];
    for what in refused {
        let expected = format!("child {what} refused");
        assert!(said.contains(&expected.as_str()), "{expected}: {said:#?}");
    }
    for expected in [
        "child shutdown ()",
        "child done",
        "parent kept held",
        "parent released held",
        "parent dropped held",
        "parent written held",
        "parent next held",
    ] {
        assert!(said.contains(&expected), "{expected}: {said:#?}");
    }
}

/// The client's id, which is in the owner token in the store.
async fn client_id(server: &RedisServer, key: &str) -> String {
    let value: String = server.query(&["GET", key]).await;
    let (client, _) = value.split_once('-').unwrap();
    client.to_owned()
}

/// That its requests have other numbers then is `messages.rs`'s to show: no two of them have the
/// same one anyway.
#[tokio::test]
async fn a_client_that_connects_anew_keeps_its_id() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let held = client.lock("a").acquire().await.unwrap();
    let before = client_id(&server, "lock:a").await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    eventually("it has connected again", async || {
        client.health().await.is_ok()
    })
    .await;
    let again = client.lock("b").acquire().await.unwrap();
    assert_eq!(client_id(&server, "lock:b").await, before);
    again.release().await.unwrap();
    held.release().await.unwrap();
}
