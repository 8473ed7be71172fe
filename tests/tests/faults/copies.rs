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

/// The owner token in the store: the client's id, and the number of the request.
async fn owner(server: &RedisServer, key: &str) -> (String, u64) {
    let value: String = server.query(&["GET", key]).await;
    let (client, request) = value.split_once('-').unwrap();
    (client.to_owned(), u64::from_str_radix(request, 16).unwrap())
}

#[tokio::test]
async fn a_client_that_connects_anew_goes_on_with_other_numbers_and_its_own_id() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let held = client.lock("a").acquire().await.unwrap();
    let before = owner(&server, "lock:a").await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    eventually("it has connected again", async || {
        client.health().await.is_ok()
    })
    .await;
    let again = client.lock("b").acquire().await.unwrap();
    let after = owner(&server, "lock:b").await;
    assert_eq!(before.0, after.0);
    assert_ne!(
        before.1 >> 32,
        after.1 >> 32,
        "{:x} {:x}",
        before.1,
        after.1
    );
    again.release().await.unwrap();
    held.release().await.unwrap();
}
