//! The server's clock is set: a client knows it by each connection's beginning.

use lock_testkit::PostgresServer;

use crate::client;

/// The server takes commands for late, by a clock that is an hour ahead of what sessions that are
/// older than this were told.
async fn set_forward(server: &PostgresServer, older_than: &str) {
    server
        .run(&format!(
            "CREATE OR REPLACE FUNCTION lock_store.expect_in_time(limit_at timestamptz)
             RETURNS void LANGUAGE plpgsql AS $$
             BEGIN
                 IF limit_at < clock_timestamp() + interval '1 hour' AND (
                     SELECT backend_start < '{older_than}' FROM pg_catalog.pg_stat_activity
                     WHERE pid = pg_catalog.pg_backend_pid())
                 THEN
                     RAISE EXCEPTION USING ERRCODE = 'LK001', MESSAGE = 'the command came too late';
                 END IF;
             END $$"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_goes_on_when_the_clock_of_its_server_was_set() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    client.lock("before").fenced().run(async {}).await.unwrap();
    let now = server.session().await;
    let now = now.query_one("SELECT clock_timestamp()::text", &[]).await;
    set_forward(&server, now.unwrap().get(0)).await;
    let guard = client.lock("k").fenced().try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
    let both = client.multi_lock(["a", "b"]).try_acquire().await.unwrap();
    both.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_comes_too_late_is_told_with_the_clock() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    set_forward(&server, "infinity").await;
    let refused = client.lock("k").fenced().try_acquire().await;
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("too late") && said.contains("its clock"),
        "{said}"
    );
}
