//! Tables, functions and rights.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{PostgresServer, Proxy, eventually};

use crate::checked::check;
use crate::{builder, client};

/// The error of a client that can't connect, or whose first lock fails.
async fn error_of(url: &str) -> String {
    match builder(url).connect().await {
        Err(error) => error.to_string(),
        Ok(client) => client.lock("k").acquire().await.unwrap_err().to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_the_functions_says_how_to_get_them() {
    let server = PostgresServer::bare().await;
    let said = error_of(&server.url()).await;
    assert!(said.contains("migrat"), "{said}");
    assert!(said.starts_with("lock configuration"), "{said}");
    // Several at once, and again: nothing changes.
    let lazy = || {
        LockClient::builder()
            .url(server.url())
            .connect_lazy()
            .unwrap()
    };
    let (one, two) = (lazy(), lazy());
    let (first, second) = tokio::join!(one.migrate(), two.migrate());
    first.unwrap();
    second.unwrap();
    let held = one.lock("k").fenced().acquire().await.unwrap();
    two.migrate().await.unwrap();
    assert!(two.lock("k").try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_rights_learns_which_grant_to_write() {
    let server = PostgresServer::bare().await;
    server.migrate().await;
    let said = error_of(&server.app_url()).await;
    assert!(said.contains("GRANT USAGE ON SCHEMA lock_store"), "{said}");
    server.run("GRANT USAGE ON SCHEMA lock_store TO app").await;
    let said = error_of(&server.app_url()).await;
    assert!(said.contains("GRANT EXECUTE ON ALL FUNCTIONS"), "{said}");
    server
        .run("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO app")
        .await;
    let client = client(&server.app_url()).await;
    let guard = client.lock("k").acquire().await.unwrap();
    guard.release().await.unwrap();
    // And no more than that.
    let (session, driver) = tokio_postgres::connect(&server.app_url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(driver);
    for statement in [
        "DELETE FROM lock_store.hold",
        "SELECT * FROM lock_store.hold",
        "UPDATE lock_store.meta SET version = 2",
    ] {
        let refused = session.simple_query(statement).await.unwrap_err();
        let code = refused.code().unwrap().code().to_owned();
        assert_eq!(code, "42501", "{statement}");
    }
}

/// Whose transactions check tokens need not be able to end locks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_only_check_tokens_can_do_that_and_nothing_else() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let guard = client.lock("k").fenced().acquire().await.unwrap();
    let session = server.session().await;
    let grants = "CREATE ROLE billing; GRANT USAGE ON SCHEMA lock_store TO billing;
        GRANT EXECUTE ON FUNCTION lock_store.lock_check(text, bigint) TO billing;
        SET ROLE billing";
    session.batch_execute(grants).await.unwrap();
    session.simple_query(&check(&guard)).await.unwrap();
    for statement in [
        "SELECT lock_store.force_release('lock:k')",
        "SELECT * FROM lock_store.hold",
    ] {
        let refused = session.simple_query(statement).await.unwrap_err();
        assert_eq!(refused.code().unwrap().code(), "42501", "{statement}");
    }
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_of_another_version_are_refused() {
    let server = PostgresServer::start().await;
    // Of a later migration.
    server
        .run(
            "CREATE OR REPLACE FUNCTION lock_store.version() RETURNS integer
             LANGUAGE sql IMMUTABLE AS 'SELECT 2';
             CREATE OR REPLACE FUNCTION lock_store.serves(client integer) RETURNS boolean
             LANGUAGE sql IMMUTABLE AS 'SELECT client = 2'",
        )
        .await;
    let said = error_of(&server.app_url()).await;
    assert!(
        said.contains("version 2") && said.contains("needs 1"),
        "{said}"
    );
}

/// At the start: a free key is one statement, which the level does not matter for. The others would
/// not see what they have waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_higher_isolation_level_is_refused() {
    let server = PostgresServer::start().await;
    let set = "ALTER ROLE app SET default_transaction_isolation =";
    for level in ["repeatable read", "serializable"] {
        server.run(&format!("{set} '{level}'")).await;
        let refused = builder(&server.app_url()).connect().await;
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("default_transaction_isolation"), "{said}");
    }
    // PostgreSQL has no such level, and takes the next one.
    server.run(&format!("{set} 'read uncommitted'")).await;
    let client = client(&server.app_url()).await;
    let _reads = client.rw_lock("k").read().acquire().await.unwrap();
    // That of a session, which others of a pooler may have set.
    let session = server.session().await;
    let call = "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT lock_store.force_release('lock:k')";
    let refused = session.batch_execute(call).await.unwrap_err();
    let said = refused.as_db_error().unwrap().message();
    assert!(said.contains("READ COMMITTED"), "{said}");
}

/// A function that came later, or was forgotten: no body runs under a lock that can't be renewed or
/// given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_execute_all_that_a_lock_needs_learns_it_at_the_start() {
    let server = PostgresServer::start().await;
    for function in [
        "acquire_first",
        "release",
        "release_first",
        "renew",
        "abandon",
        "tell",
    ] {
        let right = format!("EXECUTE ON FUNCTION lock_store.{function}");
        server.run(&format!("REVOKE {right} FROM app")).await;
        let refused = builder(&server.app_url()).connect().await;
        let said = refused.unwrap_err().to_string();
        let names = format!("may not execute lock_store.{function}(");
        assert!(said.contains(&names) && said.contains("GRANT"), "{said}");
        server.run(&format!("GRANT {right} TO app")).await;
    }
    // What is for people is not needed.
    server
        .run("REVOKE EXECUTE ON FUNCTION lock_store.force_release FROM app")
        .await;
    client(&server.app_url()).await;
}

/// What clients call, as PostgreSQL writes it.
const CALLED: &str = "SELECT oid::regprocedure::text FROM pg_proc
    WHERE pronamespace = 'lock_store'::regnamespace AND prosecdef AND proname <> 'lock_check'
    ORDER BY 1";

/// A restore that stopped half-way, or somebody who tidied up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_that_is_missing_is_named_at_the_start() {
    let server = PostgresServer::start().await;
    let session = server.session().await;
    let called = session.query(CALLED, &[]).await.unwrap();
    assert!(called.len() > 20);
    for function in called.iter().map(|row| row.get::<_, String>(0)) {
        let dropped = format!("DROP FUNCTION {function} CASCADE");
        session.batch_execute(&dropped).await.unwrap();
        let Err(refused) = builder(&server.url()).connect().await else {
            panic!("{function} is not needed");
        };
        let said = refused.to_string();
        let named = said.replace(", ", ",");
        assert!(named.contains(&function), "{function}: {said}");
        assert!(said.contains("migrat"), "{said}");
        server.migrate().await;
    }
    client(&server.url()).await;
}

/// What it calls is gone while it runs: it says which, and does not connect for each request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_misses_a_function_says_so_at_once_and_connects_seldom() {
    const MANY: usize = 200;
    let server = PostgresServer::start().await;
    let proxy = Proxy::start_postgres(([127, 0, 0, 1], server.port()).into()).await;
    let url = format!("{}?listen=off", server.app_url_at(proxy.addr()));
    let client = client(&url).await;
    let held = client.lock("k").acquire().await.unwrap();
    server
        .run("ALTER FUNCTION lock_store.release RENAME TO was_release")
        .await;
    let connections = proxy.connections();
    let begun = Instant::now();
    let refused = held.release().await.unwrap_err();
    for error in [refused, client.lock("l").acquire().await.unwrap_err()] {
        let LockError::Unavailable { source, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(source.kind(), StoreErrorKind::Misconfigured, "{source}");
        let said = source.to_string();
        assert!(said.contains("lock_store.release(bytea, "), "{said}");
        assert!(said.contains("migrat"), "{said}");
    }
    // Less than one command's time.
    assert!(begun.elapsed() < Duration::from_secs(5));
    let begun = Instant::now();
    for _ in 0..MANY {
        client.lock("l").try_acquire().await.unwrap_err();
    }
    // The pauses between them grow to half a second. A slow machine has time for more.
    let at_most = (MANY / 4).max(usize::try_from(begun.elapsed().as_millis() / 150).unwrap());
    let connections = usize::try_from(proxy.connections() - connections).unwrap();
    assert!(connections < at_most, "{connections} of {at_most}");
    server
        .run("ALTER FUNCTION lock_store.was_release RENAME TO release")
        .await;
    eventually("it is used again", async || {
        let guard = client.lock("l").try_acquire().await;
        guard.is_ok_and(|guard| guard.is_some())
    })
    .await;
}

/// The common case needs them, though `acquire` and `release` could do all that they do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_misses_a_function_of_the_common_case_names_it_until_a_migration() {
    let server = PostgresServer::start().await;
    let client = client(&server.url()).await;
    for function in ["acquire_first", "release_first"] {
        let held = client.lock(function).acquire().await.unwrap();
        server
            .run(&format!("DROP FUNCTION lock_store.{function}"))
            .await;
        let refused = match function {
            "acquire_first" => client.lock("k").acquire().await.map(drop),
            _ => held.release().await,
        };
        let said = refused.unwrap_err().to_string();
        assert!(said.contains(&format!("lock_store.{function}(")), "{said}");
        assert!(said.contains("migrat"), "{said}");
        server.migrate().await;
        eventually("it is used again", async || {
            let cycle = client.lock("k").run(async {}).await;
            cycle.is_ok()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_free_connection_is_unavailable_and_says_what_to_raise() {
    let server = PostgresServer::start().await;
    server.run("ALTER ROLE app CONNECTION LIMIT 0").await;
    match builder(&server.app_url()).connect().await {
        Err(LockError::Unavailable { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::Disconnected);
            let said = source.to_string();
            assert!(said.contains("max_connections"), "{said}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_denied_and_not_shown() {
    let server = PostgresServer::start().await;
    let url = format!(
        "postgres://nobody:hidden@127.0.0.1:{}/postgres",
        server.port()
    );
    match builder(&url).connect().await {
        Err(LockError::Unavailable { source, .. }) => {
            assert_eq!(source.kind(), StoreErrorKind::Denied);
            assert!(!source.to_string().contains("hidden"), "{source}");
        }
        other => panic!("{other:?}"),
    }
}

/// A report that runs for long keeps old row versions. Locks go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_held_open_changes_nothing() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let session = server.session().await;
    session
        .batch_execute(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM lock_store.hold",
        )
        .await
        .unwrap();
    let mut last = None;
    for _ in 0..200 {
        let guard = client.lock("k").fenced().acquire().await.unwrap();
        assert!(guard.fencing_token() > last);
        last = guard.fencing_token();
        guard.release().await.unwrap();
    }
    session.batch_execute("COMMIT").await.unwrap();
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_migrate_is_told_so_only_if_there_is_something_to_do() {
    let server = PostgresServer::bare().await;
    let app = LockClient::builder()
        .url(server.app_url())
        .connect_lazy()
        .unwrap();
    let said = app.migrate().await.unwrap_err().to_string();
    assert!(said.contains("CREATE on the database"), "{said}");
    assert!(!said.contains("GRANT"), "there is no schema: {said}");
    server.migrate().await;
    server
        .run(
            "GRANT USAGE ON SCHEMA lock_store TO app;
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO app",
        )
        .await;
    app.migrate().await.unwrap();
    // Of an earlier version.
    server
        .run(
            "CREATE OR REPLACE FUNCTION lock_store.version() RETURNS integer
             LANGUAGE sql IMMUTABLE AS 'SELECT 0'",
        )
        .await;
    let said = app.migrate().await.unwrap_err().to_string();
    assert!(said.contains("as the owner"), "{said}");
    assert!(!said.contains("GRANT"), "the user has that: {said}");
}

/// The owner of the schema needs no right on the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_the_schema_may_migrate() {
    let server = PostgresServer::bare().await;
    server
        .run("CREATE SCHEMA lock_store AUTHORIZATION app")
        .await;
    let app = LockClient::builder()
        .url(server.app_url())
        .connect_lazy()
        .unwrap();
    app.migrate().await.unwrap();
    app.lock("k").run(async {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_only_read_learns_which_setting_says_so_and_is_not_tried_again() {
    let server = PostgresServer::start().await;
    for of in ["ROLE app", "DATABASE postgres"] {
        let set = format!("ALTER {of} SET default_transaction_read_only = on");
        server.run(&set).await;
        let address = SocketAddr::from(([127, 0, 0, 1], server.port()));
        let proxy = Proxy::start_postgres(address).await;
        let url = format!("{}?listen=off", server.app_url_at(proxy.addr()));
        let lazy = LockClient::builder().url(url).connect_lazy().unwrap();
        let began = Instant::now();
        let wait = Duration::from_secs(60);
        let error = lazy.lock("k").wait(wait).acquire().await;
        let (took, connections) = (began.elapsed(), proxy.connections());
        assert!(took < wait / 4, "{took:?}");
        assert!(connections < 10, "{connections}");
        let LockError::Unavailable { source, .. } = error.unwrap_err() else {
            panic!("{of}");
        };
        assert_eq!(source.kind(), StoreErrorKind::Misconfigured);
        let said = source.to_string();
        assert!(said.contains("default_transaction_read_only"), "{said}");
        let said = lazy.migrate().await.unwrap_err().to_string();
        assert!(said.contains("default_transaction_read_only"), "{said}");
        // In a session that may write all the same.
        let reset = format!("ALTER {of} RESET default_transaction_read_only");
        server
            .run(&format!("BEGIN READ WRITE; {reset}; COMMIT"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_the_database_learns_that_right() {
    let server = PostgresServer::start().await;
    server
        .run("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
        .await;
    let said = error_of(&server.app_url()).await;
    assert!(said.contains("GRANT CONNECT ON DATABASE"), "{said}");
}

/// As a restore does it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_schema_is_made_anew_its_holders_are_told_and_tokens_rise() {
    let server = PostgresServer::start().await;
    let (old, new) = (
        client(&server.app_url()).await,
        client(&server.app_url()).await,
    );
    let lock = old.lock("k").lease(Duration::from_secs(3)).renew(true);
    let held = lock.fenced().acquire().await.unwrap();
    server.run("DROP SCHEMA lock_store CASCADE").await;
    server.migrate().await;
    let granted = "GRANT USAGE ON SCHEMA lock_store TO app;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO app";
    server.run(granted).await;
    let next = new.lock("k").fenced().acquire().await.unwrap();
    assert!(next.fencing_token() > held.fencing_token());
    held.lost().await;
    let lost = held.release().await;
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    next.release().await.unwrap();
}

/// A backup that runs for hours, and transactions that have checked a lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_changes_nothing_waits_for_nobody() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let held = client.lock("k").fenced().acquire().await.unwrap();
    let session = server.session().await;
    let token = held.fencing_token().unwrap();
    let tables = [
        "meta",
        "hold",
        "share",
        "place",
        "latch",
        "latch_place",
        "latch_call",
        "rate",
        "pass_log",
    ];
    let reads = tables.map(|table| format!("SELECT count(*) FROM lock_store.{table}"));
    let reads = reads.join("; ");
    let open = format!("BEGIN; SELECT lock_store.lock_check('lock:k', {token}); {reads}");
    session.batch_execute(&open).await.unwrap();
    let owner = builder(&server.url()).connect().await.unwrap();
    let migrated = tokio::time::timeout(Duration::from_secs(10), owner.migrate());
    migrated.await.unwrap().unwrap();
    client.lock("other").fenced().run(async {}).await.unwrap();
    session.batch_execute("COMMIT").await.unwrap();
}

/// A transaction has what it changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_can_not_go_on_gives_up_and_says_why() {
    let server = PostgresServer::bare().await;
    let session = server.session().await;
    let open = format!("BEGIN; {}", lock_runtime::POSTGRES_MIGRATION);
    let open = open.trim_end().strip_suffix("COMMIT;").unwrap();
    session.batch_execute(open).await.unwrap();
    let owner = builder(&server.url()).connect_lazy().unwrap();
    let migrated = tokio::time::timeout(Duration::from_secs(60), owner.migrate());
    let refused = migrated.await.unwrap().unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("another transaction keeps"), "{said}");
    session.batch_execute("COMMIT").await.unwrap();
    owner.migrate().await.unwrap();
}

/// A file of the time before any release may have been applied, with another name of a column.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_is_applied_again_renames_a_column_of_before() {
    let server = PostgresServer::start().await;
    server
        .run("ALTER TABLE lock_store.place RENAME suspended TO passed")
        .await;
    server.migrate().await;
    let (one, two) = (
        client(&server.app_url()).await,
        client(&server.app_url()).await,
    );
    let held = one.lock("k").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("k").fair().acquire());
    eventually("it waits", async || {
        one.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    held.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}
