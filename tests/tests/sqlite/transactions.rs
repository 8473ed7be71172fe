//! Requests that can't begin, and requests that share a transaction with one that fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_runtime::{LockError, StoreErrorKind};
use lock_store::{
    Acquire, Claim, ClientId, Clock, Failure, Instant as StoreInstant, Listener, Owner, Queue,
    Store,
};
use lock_testkit::{Heard, SqliteFile, StoreUnderTest, eventually};

use crate::client;

const LEASE: Duration = Duration::from_secs(10);

fn store(file: &SqliteFile) -> Arc<dyn Store> {
    let listener: Arc<dyn Listener> = Arc::<Heard>::default();
    let clock = Clock::new(tokio::runtime::Handle::current());
    file.store(ClientId(1), &listener, clock)
}

fn request(key: &str) -> Acquire {
    let owner = Owner {
        client: ClientId(1),
        request: 1,
    };
    let mut request = Acquire::new(Claim::new(key.into(), owner, None), LEASE);
    request.queue = Queue::Barge;
    request
}

#[tokio::test]
async fn what_could_not_begin_in_time_has_no_effect() {
    let file = SqliteFile::new();
    let store = store(&file);
    let by = |millis| StoreInstant::now() + Duration::from_millis(millis);
    store.await_connection(by(10_000)).await.unwrap();
    let other = file.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = Instant::now();
    let Err(Failure { error, unknown, .. }) = store.acquire(request("k"), by(200)).await else {
        panic!("granted without a transaction");
    };
    assert_eq!((error.kind(), unknown), (StoreErrorKind::Timeout, None));
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    // Its caller is gone, and those behind it are served.
    let next = store.inspect("k".into(), by(20_000));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(next.await.unwrap().value.unwrap().holder, None);
    assert_eq!(file.leftovers(), 0);
}

#[tokio::test]
async fn a_writer_that_stays_is_unavailable_and_not_busy() {
    let file = SqliteFile::new();
    let client = client(&file.url()).await;
    let other = file.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let request = client.lock("k").wait(Duration::from_millis(300));
    let failed = request.acquire().await;
    match &failed {
        Err(LockError::Unavailable { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::Timeout, "{source}");
        }
        other => panic!("{other:?}"),
    }
    other.execute_batch("ROLLBACK").unwrap();
    client.lock("k").run(async {}).await.unwrap();
    eventually("nothing is left", async || file.leftovers() == 0).await;
}

#[tokio::test]
async fn one_request_that_fails_spoils_no_other_of_its_transaction() {
    let file = SqliteFile::new();
    let store = store(&file);
    let by = StoreInstant::now() + LEASE;
    store.await_connection(by).await.unwrap();
    let other = file.connection();
    other
        .execute_batch(
            "CREATE TRIGGER refuses BEFORE INSERT ON hold WHEN NEW.name LIKE '%bad%'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END;
             BEGIN IMMEDIATE",
        )
        .unwrap();
    // They wait for the writer, and then share a transaction.
    let keys = ["a", "bad", "b", "bad too", "c"];
    let asked: Vec<_> = keys.map(|key| store.acquire(request(key), by)).into();
    tokio::time::sleep(Duration::from_millis(100)).await;
    other.execute_batch("ROLLBACK").unwrap();
    for (key, asked) in keys.into_iter().zip(asked) {
        let answer = asked.await;
        assert_eq!(answer.is_err(), key.starts_with("bad"), "{key}: {answer:?}");
        if let Err(Failure { error, unknown, .. }) = answer {
            assert_eq!((error.kind(), unknown), (StoreErrorKind::Refused, None));
            assert!(error.to_string().contains("not this one"), "{error}");
        }
    }
    assert_eq!(file.leftovers(), 3);
}
