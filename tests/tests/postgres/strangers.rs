//! A schema that others have made, or a part of it.

use lock_runtime::LockClient;
use lock_testkit::PostgresServer;
use tokio_postgres::{Client, NoTls};

/// A session of this user.
async fn session(server: &PostgresServer, user: &str) -> Client {
    let url = server.url().replace("postgres@", &format!("{user}@"));
    let (session, driver) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(driver);
    session
}

async fn migrate(server: &PostgresServer, user: &str) -> Result<(), String> {
    let url = server.url().replace("postgres@", &format!("{user}@"));
    let client = LockClient::builder().url(url).connect_lazy().unwrap();
    client.migrate().await.map_err(|error| error.to_string())
}

/// A table with a trap, as the migration would use it.
const TRAP: &str = "
    CREATE TABLE lock_store.meta (
        one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL,
        floor bigint NOT NULL DEFAULT 0, swept timestamptz NOT NULL DEFAULT '-infinity');
    INSERT INTO lock_store.meta (version) VALUES (1);
    CREATE FUNCTION lock_store.trap() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN EXECUTE ''ALTER ROLE app SUPERUSER''; RETURN new; END';
    CREATE TRIGGER trap BEFORE INSERT ON lock_store.meta
        FOR EACH ROW EXECUTE FUNCTION lock_store.trap();
    CREATE FUNCTION lock_store.version() RETURNS integer LANGUAGE plpgsql AS
        'BEGIN EXECUTE ''ALTER ROLE app SUPERUSER''; RETURN 1; END'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_a_stranger_made_is_refused_and_nothing_of_it_is_run() {
    for is_whole in [true, false] {
        let server = PostgresServer::bare().await;
        server.run("GRANT CREATE ON DATABASE postgres TO app").await;
        let stranger = session(&server, "app").await;
        if is_whole {
            stranger
                .batch_execute("CREATE SCHEMA lock_store")
                .await
                .unwrap();
            // It may make everybody a member of itself.
            let _ = stranger.batch_execute("GRANT app TO postgres").await;
        } else {
            let made = "CREATE SCHEMA lock_store; GRANT CREATE, USAGE ON SCHEMA lock_store TO app";
            server.run(made).await;
        }
        stranger.batch_execute(TRAP).await.unwrap();
        let refused = migrate(&server, "postgres").await.unwrap_err();
        assert!(refused.contains("belongs to app"), "{refused}");
        let trapped = "SELECT count(*) FROM pg_roles WHERE rolname = 'app' AND rolsuper";
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
