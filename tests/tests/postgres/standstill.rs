//! A server that stands still is never told as one that answers.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Acquire, Acquired, Claim, ClientId, Clock, Instant, Listener, Owner, Queue, Replied, Store,
    StoreErrorKind,
};
use lock_testkit::{Heard, PostgresServer, StoreUnderTest, eventually};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::crowd::{AT_THE_ROW, await_row_lock, row_of_k_if_any};

const SHORT: Duration = Duration::from_secs(1);

pub(crate) fn store(server: &PostgresServer) -> Arc<dyn Store> {
    let listener: Arc<dyn Listener> = Arc::<Heard>::default();
    let clock = Clock::new(tokio::runtime::Handle::current());
    let under_test: &dyn StoreUnderTest = server;
    under_test.store(ClientId(7), &listener, clock)
}

/// The request of this number wants the key `k`, within so many seconds.
pub(crate) async fn join(store: Arc<dyn Store>, number: u64, seconds: u32) -> Replied<Acquired> {
    let client = ClientId(7);
    let request = number;
    let owner = Owner { client, request };
    let mut wants = Acquire::new(Claim::new("k".into(), owner, None), 30 * SHORT);
    wants.queue = Queue::Join;
    store.acquire(wants, Instant::now() + seconds * SHORT).await
}

fn kind(replied: Replied<Acquired>) -> StoreErrorKind {
    replied.unwrap_err().error.kind()
}

/// A session that has the row of `k`, and a request that waits for it.
async fn one_at_the_row(
    server: &PostgresServer,
    store: &Arc<dyn Store>,
) -> (Client, JoinHandle<Replied<Acquired>>) {
    let row = loop {
        server
            .run(
                "INSERT INTO lock_store.hold (name, special) VALUES ('lock:k', true)
                 ON CONFLICT DO NOTHING",
            )
            .await;
        // A client sweeps when it begins, and removes rows that say nothing.
        if let Some(row) = row_of_k_if_any(server).await {
            break row;
        }
    };
    let asks = tokio::spawn(join(Arc::clone(store), 1, 6));
    await_row_lock(server).await;
    (row, asks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_behind_one_that_is_not_answered_has_no_answer_either() {
    let server = PostgresServer::start().await;
    let store = store(&server);
    let (_row, asks) = one_at_the_row(&server, &store).await;
    server.pause();
    let behind = join(Arc::clone(&store), 2, 1).await;
    assert_eq!(kind(behind), StoreErrorKind::Timeout);
    assert!(!asks.is_finished());
}

/// The one before it is told so, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_behind_one_that_does_not_get_at_the_row_is_contended() {
    let server = PostgresServer::start().await;
    let store = store(&server);
    let (_row, asks) = one_at_the_row(&server, &store).await;
    let behind = join(Arc::clone(&store), 2, 2).await;
    assert_eq!(kind(behind), StoreErrorKind::Contended);
    assert_eq!(kind(asks.await.unwrap()), StoreErrorKind::Contended);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_after_a_row_was_locked_is_not_contended() {
    let server = PostgresServer::start().await;
    let store = store(&server);
    let (_row, asks) = one_at_the_row(&server, &store).await;
    eventually("it was told that the row is locked", async || {
        server.number(AT_THE_ROW).await == 0
    })
    .await;
    server.pause();
    assert_eq!(kind(asks.await.unwrap()), StoreErrorKind::Timeout);
}
