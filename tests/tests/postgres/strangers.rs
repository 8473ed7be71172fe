//! A schema that others have made, or a part of it.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::PostgresServer;
use tokio_postgres::{Client, NoTls};

use crate::client;

/// With a stranger. Other tests of this program hide the names of their users.
async fn with_a_stranger(server: PostgresServer) -> PostgresServer {
    server.run("CREATE ROLE mallory LOGIN").await;
    server
}

/// A session of this user.
async fn session(server: &PostgresServer, user: &str) -> Client {
    let url = server.url().replace("postgres@", &format!("{user}@"));
    let (session, driver) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(driver);
    session
}

fn lazy(server: &PostgresServer, user: &str) -> LockClient {
    let url = server.url().replace("postgres@", &format!("{user}@"));
    LockClient::builder().url(url).connect_lazy().unwrap()
}

async fn migrate(server: &PostgresServer, user: &str) -> Result<(), String> {
    let migrated = lazy(server, user).migrate().await;
    migrated.map_err(|error| error.to_string())
}

/// A table with a trap, as the migration would use it.
const TRAP: &str = "
    CREATE TABLE lock_store.meta (
        one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL,
        floor bigint NOT NULL DEFAULT 0, swept timestamptz NOT NULL DEFAULT '-infinity');
    INSERT INTO lock_store.meta (version) VALUES (1);
    CREATE FUNCTION lock_store.trap() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN EXECUTE ''ALTER ROLE mallory SUPERUSER''; RETURN new; END';
    CREATE TRIGGER trap BEFORE INSERT ON lock_store.meta
        FOR EACH ROW EXECUTE FUNCTION lock_store.trap()";

/// Whatever compares or multiplies these types in a session of `postgres` finds its operators
/// before the server's own: there are none for just these types.
const PLANTED: &str = r#"
    CREATE SCHEMA postgres;
    GRANT USAGE ON SCHEMA postgres TO PUBLIC;
    CREATE TABLE postgres.planted (who text);
    CREATE FUNCTION postgres.equals(a oid, b regclass) RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN INSERT INTO postgres.planted VALUES (current_user);
         RETURN a OPERATOR(pg_catalog.=) b::oid; END';
    CREATE OPERATOR postgres.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = postgres.equals);
    CREATE FUNCTION postgres.times(a float8, b integer) RETURNS float8 LANGUAGE plpgsql AS
        'BEGIN INSERT INTO postgres.planted VALUES (current_user);
         RETURN a OPERATOR(pg_catalog.*) b::float8; END';
    CREATE OPERATOR postgres.* (LEFTARG = float8, RIGHTARG = integer, FUNCTION = postgres.times);
    CREATE FUNCTION postgres.format(a text, b text, c name, d name) RETURNS text
        LANGUAGE plpgsql AS
        'BEGIN INSERT INTO postgres.planted VALUES (current_user);
         RETURN pg_catalog.format(a, b, c, d); END'"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_that_a_stranger_made_are_not_called() {
    let server = with_a_stranger(PostgresServer::bare().await).await;
    server
        .run("GRANT CREATE ON DATABASE postgres TO mallory")
        .await;
    let stranger = session(&server, "mallory").await;
    stranger.batch_execute(PLANTED).await.unwrap();
    server
        .run("GRANT INSERT ON postgres.planted TO PUBLIC")
        .await;
    for _ in 0..2 {
        migrate(&server, "postgres").await.unwrap();
    }
    let client = client(&server.url()).await;
    client
        .lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    client.inspect("k").await.unwrap();
    client.health().await.unwrap();
    assert_eq!(
        server.number("SELECT count(*) FROM postgres.planted").await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_a_stranger_made_is_refused_and_nothing_of_it_is_run() {
    for is_whole in [true, false] {
        let server = with_a_stranger(PostgresServer::bare().await).await;
        server
            .run("GRANT CREATE ON DATABASE postgres TO mallory")
            .await;
        let stranger = session(&server, "mallory").await;
        if is_whole {
            stranger
                .batch_execute("CREATE SCHEMA lock_store")
                .await
                .unwrap();
            // It may make everybody a member of itself.
            let _ = stranger.batch_execute("GRANT mallory TO postgres").await;
        } else {
            let made =
                "CREATE SCHEMA lock_store; GRANT CREATE, USAGE ON SCHEMA lock_store TO mallory";
            server.run(made).await;
        }
        stranger.batch_execute(TRAP).await.unwrap();
        let refused = migrate(&server, "postgres").await.unwrap_err();
        assert!(refused.contains("belongs to mallory"), "{refused}");
        let trapped = "SELECT count(*) FROM pg_roles WHERE rolname = 'mallory' AND rolsuper";
        assert_eq!(server.number(trapped).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_the_owner_applies_it_again_and_rights_stay() {
    let server = PostgresServer::bare().await;
    server
        .run(
            "CREATE ROLE owners; CREATE ROLE anne LOGIN IN ROLE owners; CREATE ROLE bob LOGIN;
             GRANT CREATE ON DATABASE postgres TO owners, bob",
        )
        .await;
    let anne = session(&server, "anne").await;
    let made = format!("SET ROLE owners; {}", lock_runtime::POSTGRES_MIGRATION);
    anne.batch_execute(&made).await.unwrap();
    let granted = "GRANT USAGE ON SCHEMA lock_store TO app;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO app";
    anne.batch_execute(granted).await.unwrap();
    migrate(&server, "anne").await.unwrap();
    let client = LockClient::builder().url(server.app_url()).connect().await;
    client.unwrap().lock("k").run(async {}).await.unwrap();
    let rights = "SELECT count(*) FROM pg_proc
        WHERE pronamespace = 'lock_store'::regnamespace AND prosecdef
          AND NOT has_function_privilege('app', oid, 'EXECUTE')";
    assert_eq!(server.number(rights).await, 0);
}

/// What a client calls by itself, with a trap.
const TRAPS: &str = "
    CREATE TABLE lock_store.calls (by name);
    CREATE FUNCTION lock_store.trap() RETURNS void LANGUAGE sql AS
        'INSERT INTO lock_store.calls VALUES (session_user)';
    CREATE FUNCTION lock_store.version() RETURNS integer LANGUAGE plpgsql AS
        'BEGIN PERFORM lock_store.trap(); RETURN 1; END';
    CREATE FUNCTION lock_store.sweep() RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN PERFORM lock_store.trap(); RETURN false; END';
    CREATE FUNCTION lock_store.sweeps_each() RETURNS bigint LANGUAGE sql AS 'SELECT 100000';
    CREATE FUNCTION lock_store.tell(bytea, text) RETURNS void LANGUAGE sql AS
        'SELECT lock_store.trap()'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_stranger_made_is_called_by_who_may_do_more() {
    let server = with_a_stranger(PostgresServer::bare().await).await;
    server
        .run(
            "GRANT CREATE ON DATABASE postgres TO mallory;
             CREATE ROLE admin LOGIN CREATEROLE; CREATE ROLE dba SUPERUSER;
             CREATE ROLE anne LOGIN IN ROLE dba;
             CREATE ROLE bob LOGIN IN ROLE pg_execute_server_program",
        )
        .await;
    let stranger = session(&server, "mallory").await;
    let made = format!("CREATE SCHEMA lock_store; {TRAPS}");
    stranger.batch_execute(&made).await.unwrap();
    let _ = stranger.batch_execute("GRANT mallory TO postgres").await;
    let open = "GRANT USAGE ON SCHEMA lock_store TO PUBLIC;
        GRANT ALL ON lock_store.calls TO PUBLIC";
    stranger.batch_execute(open).await.unwrap();
    for user in ["postgres", "admin", "anne", "bob"] {
        let client = lazy(&server, user);
        let _ = client.migrate().await;
        let lock = client.lock("k").wait(Duration::from_secs(60));
        let refused = lock.acquire().await.unwrap_err();
        let is_unavailable = matches!(refused, LockError::Unavailable { .. });
        let said = refused.to_string();
        assert!(
            is_unavailable && said.contains("belongs to mallory"),
            "{said}"
        );
        assert!(said.contains(user), "{said}");
        let refused = [client.health().await.err(), client.inspect("k").await.err()];
        assert!(refused.iter().all(Option::is_some), "{refused:?}");
        // As long as its tasks take that go on in the background.
        client.shutdown(Duration::from_secs(5)).await;
    }
    let called = "SELECT count(*) FROM lock_store.calls";
    assert_eq!(server.number(called).await, 0);
}

/// Each function that clients call is carried out with the rights of its owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_has_to_be_applied_it_does_not_matter_whose_the_schema_is() {
    let server = with_a_stranger(PostgresServer::bare().await).await;
    server
        .run("GRANT CREATE ON DATABASE postgres TO mallory")
        .await;
    migrate(&server, "mallory").await.unwrap();
    migrate(&server, "postgres").await.unwrap();
    let client = crate::client(&server.url()).await;
    client.lock("k").fenced().run(async {}).await.unwrap();
    client.rw_lock("k").read().run(async {}).await.unwrap();
    client.health().await.unwrap();
    // What has to be applied is refused.
    server.run("DROP FUNCTION lock_store.release CASCADE").await;
    let refused = migrate(&server, "postgres").await.unwrap_err();
    assert!(refused.contains("belongs to mallory"), "{refused}");
    migrate(&server, "mallory").await.unwrap();
}

/// A part of the schema is enough: calls find the function whose parameters fit best.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_trusts_the_owner_of_what_is_called_may_do_more() {
    let server = with_a_stranger(PostgresServer::start().await).await;
    server
        .run("GRANT CREATE, USAGE ON SCHEMA lock_store TO mallory")
        .await;
    crate::client(&server.url()).await;
    session(&server, "mallory")
        .await
        .batch_execute(
            "CREATE FUNCTION lock_store.leave(text) RETURNS void LANGUAGE sql AS 'SELECT'",
        )
        .await
        .unwrap();
    let refused = LockClient::builder().url(server.url()).connect().await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("leave(text) belongs to mallory"), "{said}");
    // Others have nothing to lose by it.
    crate::client(&server.app_url()).await;
    server.run("GRANT mallory TO postgres").await;
    crate::client(&server.url()).await;
}
