//! `client.with_layout`: one client, with keys of its own and keys as Redisson keeps them.

use std::time::Duration;

use lock_runtime::{Layout, LockClient, LockError};
use lock_testkit::{RedisServer, eventually};

use crate::Java;

const LEASE: Duration = Duration::from_secs(30);

async fn native(server: &RedisServer) -> LockClient {
    let builder = LockClient::builder().url(server.url()).wait(LEASE);
    let builder = builder.command_timeout(Duration::from_secs(3));
    builder.connect().await.unwrap()
}

fn reason(error: LockError) -> String {
    match error {
        LockError::Config { message, .. } => message.to_string(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_view_shares_redissons_locks_and_the_client_keeps_its_own() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let client = native(&server).await;
    let view = client.with_layout(Layout::Redisson);
    let taken = java.ask("t", "take lock k 1000 30000").await;
    assert!(taken.starts_with("took"), "{taken}");
    let own = client.lock("k").acquire().await.unwrap();
    let busy = view.lock("k").wait(Duration::from_millis(50));
    let busy = busy.acquire().await.unwrap_err().to_string();
    assert!(busy.contains(&java.id), "{busy}");
    let waiting = tokio::spawn(view.lock("k").acquire());
    eventually("it waits", async || view.stats().waiting == 1).await;
    assert_eq!(java.ask("t", "give lock k").await, "gave");
    let shared = waiting.await.unwrap().unwrap();
    let taken = java.ask("t", "take lock k 50 30000").await;
    assert!(!taken.starts_with("took"), "{taken}");
    let mut keys = server.keys("*").await;
    keys.sort();
    assert_eq!(keys, ["k", "lock:k"]);
    shared.release().await.unwrap();
    assert!(own.is_held());
    let taken = java.ask("t", "take lock k 1000 30000").await;
    assert!(taken.starts_with("took"), "{taken}");
}

#[tokio::test]
async fn keys_of_two_layouts_are_two_locks_in_one_process() {
    let server = RedisServer::start().await;
    let client = native(&server).await;
    let view = client.with_layout(Layout::Redisson);
    let own = client.lock("k").acquire().await.unwrap();
    // Waits for the client's key, and gets no hold of the other layout handed off.
    let waiting = tokio::spawn(client.lock("k").acquire());
    eventually("it waits", async || client.stats().waiting == 1).await;
    let shared = view.lock("k").acquire().await.unwrap();
    shared.release().await.unwrap();
    assert_eq!(client.stats().waiting, 1);
    own.scope(async {
        // Not nested in the hold of the same key in another layout.
        let inner = view.lock("k").acquire().await.unwrap();
        for (key, kind) in [("k", "hash"), ("lock:k", "string")] {
            assert_eq!(server.query::<String>(&["TYPE", key]).await, kind);
        }
        inner.release().await.unwrap();
    })
    .await;
    own.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_held());
}

/// In one namespace they have one name in Redis.
#[tokio::test]
async fn a_key_that_the_other_layout_has_under_the_same_name_is_a_conflict() {
    let server = RedisServer::start().await;
    let client = native(&server).await.namespaced("shop");
    let view = client.with_layout(Layout::Redisson);
    for (has, wants) in [(&client, &view), (&view, &client)] {
        let held = has.lock("k").acquire().await.unwrap();
        let conflict = wants.lock("k").acquire().await;
        let is_conflict = matches!(conflict, Err(LockError::KeyConflict { .. }));
        assert!(is_conflict, "{conflict:?}");
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_view_of_a_view_has_the_namespace_and_the_layout_that_were_named_last() {
    let server = RedisServer::start().await;
    let client = native(&server).await;
    let acme = client.namespaced("acme");
    let view = acme.with_wait(Duration::ZERO).with_layout(Layout::Redisson);
    let held = view.lock("k").acquire().await.unwrap();
    assert_eq!(server.keys("*").await, ["acme:k"]);
    // The same view, by other ways.
    let redisson = client.with_layout(Layout::Redisson);
    for same in [
        redisson.namespaced("acme"),
        view.with_layout(Layout::Redisson),
    ] {
        assert!(same.lock("k").try_acquire().await.unwrap().is_none());
    }
    held.release().await.unwrap();
    // Back in the client's own layout, with the view's namespace and wait.
    let back = view.with_layout(Layout::Native);
    let held = acme.lock("k").acquire().await.unwrap();
    let busy = back.lock("k").acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    assert_eq!(client.stats().held, back.stats().held);
    held.release().await.unwrap();
    // The namespace of the other layout is the empty one, whether it is named or not.
    let outer = redisson.lock("k").acquire().await.unwrap();
    assert_eq!(server.keys("*").await, ["k"]);
    let inner = redisson.namespaced("").lock("k").wait(Duration::ZERO);
    let inner = outer.scope(inner.acquire()).await.unwrap();
    assert!(inner.is_held());
}

#[tokio::test]
async fn a_shutdown_of_the_client_or_of_a_view_ends_all_of_them() {
    let server = RedisServer::start().await;
    for by_view in [false, true] {
        let client = native(&server).await;
        let view = client.with_layout(Layout::Redisson);
        let held = view.lock("k").acquire().await.unwrap();
        let ends = if by_view { &view } else { &client };
        let ending = ends.clone();
        let ending = tokio::spawn(async move { ending.shutdown(LEASE).await });
        tokio::join!(client.closing(), view.closing());
        assert!(held.is_held(), "it has until the timeout");
        held.release().await.unwrap();
        ending.await.unwrap();
        let timestamp = client.with_layout(Layout::Timestamp);
        for refuses in [&client, &view, &timestamp] {
            let refused = refuses.lock("k").acquire().await;
            assert!(matches!(refused, Err(LockError::Shutdown)), "{refused:?}");
        }
    }
    eventually("no connection is left", async || {
        let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "PUBSUB"]).await;
        clients.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_view_outlives_its_client_and_takes_its_connections_with_it() {
    let server = RedisServer::start().await;
    let client = native(&server).await;
    let view = client.with_layout(Layout::Redisson);
    drop(client);
    view.lock("k").run(async {}).await.unwrap();
    let native = view.with_layout(Layout::Native);
    let held = native.lock("k").acquire().await.unwrap();
    drop((view, native, held));
    eventually("nothing is left", async || {
        let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "PUBSUB"]).await;
        clients.is_empty() && server.keys("*").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_view_in_a_layout_that_the_store_does_not_have_says_why() {
    let quorum = "redis-quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
    let own = LockClient::builder()
        .store(|context| Ok(lock_store::memory::MemoryStore::new().connect(context)));
    for (client, says) in [
        (LockClient::in_memory(), "`memory:`"),
        (
            LockClient::builder().url(quorum).connect_lazy().unwrap(),
            "quorum",
        ),
        (own.connect_lazy().unwrap(), "the caller's"),
    ] {
        let view = client.with_layout(Layout::Redisson);
        let said = reason(view.lock("k").acquire().await.unwrap_err());
        assert!(said.contains("`redisson`") && said.contains(says), "{said}");
        let said = reason(view.health().await.unwrap_err());
        assert!(said.contains("`redisson`"), "{said}");
    }
    let client = LockClient::in_memory();
    let refuses = client.with_layout(Layout::Redisson);
    let same = refuses.with_layout(Layout::Native);
    let held = client.lock("k").acquire().await.unwrap();
    assert!(same.lock("k").try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
}

#[tokio::test]
async fn what_a_url_says_of_the_clients_layout_is_not_for_its_views() {
    let server = RedisServer::start().await;
    let url = format!("{}?layout=timestamp&unit=s&skew=2s", server.url());
    let client = LockClient::builder().url(url).connect().await.unwrap();
    let held = client.lock("k").acquire().await.unwrap();
    let value: u64 = server.query(&["GET", "k"]).await;
    assert!(value < 100_000_000_000, "seconds: {value}");
    let view = client.with_layout(Layout::Native);
    view.lock("k").run(async {}).await.unwrap();
    assert!(held.is_held());
}
