//! A row is waited for before the places are locked, as whoever hands the lock over does.

use std::sync::Arc;

use lock_testkit::PostgresServer;
use tokio_postgres::Client;

use crate::client;
use crate::crowd::{await_row_lock, row_of_k};
use crate::standstill::{join, store};

const PLACE: &str = "SELECT 1 FROM lock_store.place FOR UPDATE";

/// A server, and a session.
async fn patient() -> (PostgresServer, Client) {
    let server = PostgresServer::start().await;
    // On a busy machine, a test may keep a row for longer than a request waits for one.
    let patient = "ALTER FUNCTION lock_store.acquire SET lock_timeout = '60s'";
    server.run(patient).await;
    let session = server.session().await;
    (server, session)
}

/// Who waits is seen at its next request.
async fn age(server: &PostgresServer) {
    let earlier = "UPDATE lock_store.place SET seen = seen - interval '1 second'";
    server.run(earlier).await;
}

/// On one thread: both are in line before they are taken up, as one statement.
#[tokio::test]
async fn a_new_request_waits_for_the_row_before_those_that_wait_are_seen() {
    let (server, _) = patient().await;
    let holder = client(&server.app_url()).await;
    let _held = holder.lock("k").acquire().await.unwrap();
    let store = store(&server);
    join(Arc::clone(&store), 1, 60).await.unwrap();
    age(&server).await;
    let row = row_of_k(&server).await;
    let hands_over = async {
        await_row_lock(&server).await;
        // Refused if the place is locked.
        let place = row.query_one(&format!("{PLACE} NOWAIT"), &[]).await;
        place.unwrap();
        row.batch_execute("COMMIT").await.unwrap();
    };
    let (first, new, ()) = tokio::join!(
        join(Arc::clone(&store), 1, 60),
        join(Arc::clone(&store), 2, 60),
        hands_over,
    );
    first.unwrap();
    new.unwrap();
    let places = "SELECT count(*) FROM lock_store.place
        WHERE seen > clock_timestamp() - interval '1 minute'";
    assert_eq!(server.number(places).await, 2);
}

/// Whatever order they come in.
#[tokio::test]
async fn a_statement_that_has_locked_a_place_does_not_wait_for_the_row() {
    let (server, session) = patient().await;
    let holder = client(&server.app_url()).await;
    let _held = holder.lock("k").acquire().await.unwrap();
    let join = |byte: u8| {
        format!(
            "SELECT code FROM lock_store.acquire('lock:k', decode(repeat('07', 16) ||
                repeat('{byte:02x}', 8), 'hex'), NULL, NULL, 30000000, 30000000, NULL, 0, 2, NULL,
                4000000000000000)"
        )
    };
    session.query_one(&join(1), &[]).await.unwrap();
    age(&server).await;
    session.batch_execute("BEGIN").await.unwrap();
    session.query_one(&join(1), &[]).await.unwrap();
    let row = row_of_k(&server).await;
    let new = join(2);
    let (refused, handed_over) =
        tokio::join!(session.query_one(&new, &[]), row.query_one(PLACE, &[]));
    // And not for a deadlock.
    assert_eq!(refused.unwrap_err().code().unwrap().code(), "55P03");
    handed_over.unwrap();
}
