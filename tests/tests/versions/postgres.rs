//! PostgreSQL: the functions are the database's, and clients of two versions may use them.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_store::ClientMessage;
use lock_testkit::{PostgresServer, eventually};

use crate::clients::{A, B, Clients, by, owner};

/// A later migration, whose functions serve today's clients as well.
const LATER: &str = "
    UPDATE lock_store.meta SET version = 2;
    CREATE OR REPLACE FUNCTION lock_store.version() RETURNS integer
        LANGUAGE sql IMMUTABLE AS 'SELECT 2';
    CREATE OR REPLACE FUNCTION lock_store.serves(client integer) RETURNS boolean
        LANGUAGE sql IMMUTABLE AS 'SELECT client IN (1, 2)'";

/// The same, and it serves only clients of its own version. What today's call is gone.
const LATER_ONLY: &str = "
    BEGIN;
    UPDATE lock_store.meta SET version = 2;
    CREATE OR REPLACE FUNCTION lock_store.version() RETURNS integer
        LANGUAGE sql IMMUTABLE AS 'SELECT 2';
    CREATE OR REPLACE FUNCTION lock_store.serves(client integer) RETURNS boolean
        LANGUAGE sql IMMUTABLE AS 'SELECT client = 2';
    DO $do$
    DECLARE
        gone record;
    BEGIN
        FOR gone IN
            SELECT oid::regprocedure AS called FROM pg_proc
            WHERE pronamespace = 'lock_store'::regnamespace AND prosecdef
              AND proname NOT IN ('version', 'serves')
        LOOP
            EXECUTE format('DROP FUNCTION %s CASCADE', gone.called);
        END LOOP;
    END
    $do$;
    COMMIT";

async fn client(server: &PostgresServer) -> Result<LockClient, LockError> {
    let builder = LockClient::builder().url(server.app_url());
    let builder = builder.command_timeout(Duration::from_secs(5));
    builder
        .connect_timeout(Duration::from_secs(10))
        .connect()
        .await
}

fn expect_version(error: &LockError) {
    let said = error.to_string();
    assert!(said.contains("version 2"), "{said}");
    assert!(said.contains("needs 1"), "{said}");
    assert!(said.contains("newest migration"), "{said}");
    if let LockError::Unavailable { source, .. } = error {
        assert_eq!(source.kind(), StoreErrorKind::OtherVersion, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_of_a_later_version_that_serve_this_one_are_used() {
    let server = PostgresServer::start().await;
    let before = client(&server).await.unwrap();
    let held = before.lock("k").acquire().await.unwrap();
    server.run(LATER).await;
    let after = client(&server).await.unwrap();
    assert!(after.lock("k").try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    after.lock("k").run(async {}).await.unwrap();
    // Who applies the earlier migration changes nothing, and is told so only if that matters.
    let owner = LockClient::builder()
        .url(server.url())
        .connect_lazy()
        .unwrap();
    owner.migrate().await.unwrap();
    after.migrate().await.unwrap();
    assert_eq!(
        server.number("SELECT lock_store.version()::bigint").await,
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_that_do_not_serve_this_version_are_refused() {
    let server = PostgresServer::start().await;
    server.run(LATER_ONLY).await;
    expect_version(&client(&server).await.unwrap_err());
}

/// A migration while clients of the version before run: they stop, and say why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_functions_are_replaced_is_told_which_versions_meet() {
    let server = PostgresServer::start().await;
    let before = client(&server).await.unwrap();
    let lease = Duration::from_secs(3);
    let held = before
        .lock("k")
        .lease(lease)
        .renew(true)
        .acquire()
        .await
        .unwrap();
    server.run(LATER_ONLY).await;
    for request in [
        before.lock("l"),
        before.lock("k").fair(),
        before.rw_lock("m").read(),
    ] {
        expect_version(&request.acquire().await.unwrap_err());
    }
    // What can't be renewed is lost in its time.
    held.lost().await;
    assert!(!held.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_later_version_are_skipped() {
    let server = PostgresServer::start().await;
    let clients = Clients::of(&server).await;
    let waits = owner(B, 1);
    let hears = ClientMessage::WhoHolds {
        key: "k".into(),
        asker: A,
    };
    let heard = &clients.heard_by_b;
    eventually("it hears others", async || {
        let _ = clients.a.tell(B, hears.clone(), by()).await;
        !heard.told.lock().unwrap().is_empty()
    })
    .await;
    heard.told.lock().unwrap().clear();
    let now = ClientMessage::WhoHolds {
        key: "now".into(),
        asker: A,
    };
    for message in [
        format!("2 granted {:032x} {:x} 7", B.0, waits.request),
        format!("1 passed {:032x} {:x} 7", B.0, waits.request),
        format!("1 granted {:032x} {:x} 7 8", B.0, waits.request),
        format!("2 who {:032x} x x6b", A.0),
        format!("1 who {:032x} x x6b more", A.0),
    ] {
        let channel = format!("lock_{:032x}", B.0);
        let notify = format!("SELECT pg_notify('{channel}', '{message}')");
        server.run(&notify).await;
    }
    clients.a.tell(B, now.clone(), by()).await.unwrap();
    eventually("it is told", async || {
        heard.told.lock().unwrap().contains(&now)
    })
    .await;
    let told = heard.told.lock().unwrap().clone();
    assert!(
        told.iter().all(|told| *told == now || *told == hears),
        "{told:?}"
    );
    assert!(heard.granted.lock().unwrap().is_empty());
}
