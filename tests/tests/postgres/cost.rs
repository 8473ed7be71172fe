//! What locks cost a PostgreSQL server: requests, as a proxy counts them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{PostgresServer, Proxy, eventually};

use crate::client;

/// A client whose requests are counted.
async fn counted(server: &PostgresServer, options: &str) -> (Proxy, LockClient) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let proxy = Proxy::start_postgres(address).await;
    let url = format!("{}{options}", server.app_url_at(proxy.addr()));
    let client = client(&url).await;
    // It is known whether they are its own.
    client.health().await.unwrap();
    // Its sessions know the statements then.
    let (lock, other) = (client.lock("before"), client.lock("and again"));
    lock.run(async {}).await.unwrap();
    other.run(async {}).await.unwrap();
    (proxy, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_lock_is_one_request_and_its_release_another() {
    let server = PostgresServer::start().await;
    let (proxy, client) = counted(&server, "?connections=1").await;
    let before = proxy.requests();
    for number in 0..50 {
        let guard = client.lock(format!("k:{number}")).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    // What the client asks for itself, as to sweep, is little.
    let asked = proxy.requests() - before;
    assert!((100..=103).contains(&asked), "{asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_asks_each_second_and_hears_of_the_release() {
    let server = PostgresServer::start().await;
    let holder = client(&server.app_url()).await;
    let held = holder.lock("k").acquire().await.unwrap();
    let (proxy, waiter) = counted(&server, "?connections=1").await;
    let waits = waiter.lock("k").wait(Duration::from_secs(60));
    let waits = tokio::spawn(async move { waits.acquire().await.unwrap() });
    eventually("it waits", async || {
        server.number("SELECT count(*) FROM lock_store.place").await == 1
    })
    .await;
    let before = proxy.requests();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = proxy.requests() - before;
    assert!((2..=5).contains(&asked), "{asked}");
    // Those who wait behind it say nothing at all, and nobody waits for the next second.
    held.release().await.unwrap();
    waits.await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_listen_asks_less_and_less_often() {
    let server = PostgresServer::start().await;
    let holder = client(&server.app_url()).await;
    let _held = holder.lock("k").acquire().await.unwrap();
    // And no further connection, which asks some questions first.
    let (proxy, waiter) = counted(&server, "?listen=off&connections=1").await;
    // Its session knows the statements of one that waits, too.
    let waits = waiter.lock("k").wait(Duration::from_millis(200));
    assert!(waits.acquire().await.is_err());
    let before = proxy.requests();
    let waits = waiter.lock("k").wait(Duration::from_secs(4));
    let busy = waits.acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    // After 50 ms, twice that, and so on, at last after a second each; and it leaves its place.
    let asked = proxy.requests() - before;
    assert!((5..=14).contains(&asked), "{asked}");
}
