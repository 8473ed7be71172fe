//! Statements that a client's own sessions keep.

use std::net::SocketAddr;

use lock_runtime::{LockClient, Tls};
use lock_testkit::{PgBouncer, PostgresServer, eventually};

use crate::keyed_pooler::KeyedPooler;
use crate::{builder, client, tls};

/// From now on, `inspect` does this, and tells in `waiting` how many statements its session keeps.
async fn instead_of_inspect(server: &PostgresServer, does: &str) {
    let sql = format!(
        "CREATE OR REPLACE FUNCTION lock_store.inspect(
             n bytea, OUT code integer, OUT holder bytea, OUT permits integer, OUT remaining bigint,
             OUT holders bigint, OUT waiting bigint, OUT taken bigint, OUT of_all integer
         ) LANGUAGE plpgsql SECURITY DEFINER AS $$
         BEGIN {does} SELECT 0, count(*) INTO code, waiting FROM pg_prepared_statements; END $$"
    );
    server.run(&sql).await;
}

async fn kept(client: &LockClient) -> usize {
    client.inspect("k").await.unwrap().waiting
}

#[tokio::test]
async fn a_session_of_its_own_keeps_statements_and_one_of_a_pooler_keeps_none() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    instead_of_inspect(&server, "").await;
    let direct = client(&server.app_url()).await;
    eventually("it is kept", async || kept(&direct).await > 0).await;
    let pooled = client(&pooler.url()).await;
    for _ in 0..20 {
        let _guard = pooled.lock("k").acquire().await.unwrap();
        assert_eq!(kept(&pooled).await, 0);
    }
}

/// There, the number of a session's process proves nothing.
#[tokio::test]
async fn a_pooler_that_tells_a_sessions_process_keeps_no_statements() {
    let server = PostgresServer::start().await;
    let pooler = KeyedPooler::start(SocketAddr::from(([127, 0, 0, 1], server.port()))).await;
    instead_of_inspect(&server, "").await;
    for options in ["?connections=1&listen=off", "?connections=1"] {
        let url = server.app_url_at(pooler.address) + options;
        let pooled = client(&url).await;
        for _ in 0..20 {
            let _guard = pooled.lock("k").acquire().await.unwrap();
            assert_eq!(kept(&pooled).await, 0, "{options}");
        }
        pooler.rotate();
    }
}

#[tokio::test]
async fn a_session_over_tls_keeps_statements() {
    let (server, pem) = tls::server().await;
    instead_of_inspect(&server, "").await;
    let builder = builder(&format!("{}?sslmode=require", server.app_url()));
    let client = builder.tls(Tls::new().ca_pem(pem)).connect().await.unwrap();
    eventually("it is kept", async || kept(&client).await > 0).await;
}

#[tokio::test]
async fn statements_that_the_session_has_dropped_are_sent_with_their_text() {
    let server = PostgresServer::start().await;
    instead_of_inspect(&server, "").await;
    let direct = client(&server.app_url()).await;
    let cycle = async || {
        let guard = direct.lock("k").acquire().await.unwrap();
        guard.release().await.unwrap();
        kept(&direct).await
    };
    // Acquire, release and inspect, in one session at least.
    eventually("they are kept", async || cycle().await >= 3).await;
    instead_of_inspect(&server, "EXECUTE 'DEALLOCATE ALL';").await;
    for _ in 0..20 {
        assert_eq!(cycle().await, 0);
    }
}
