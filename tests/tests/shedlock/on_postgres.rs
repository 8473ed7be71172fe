//! In PostgreSQL: the table `shedlock`, as ShedLock's documentation has it, by the server's time.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::observe::{Event, Observer, What};
use lock_runtime::{Credentials, Layout, LockClient, LockError};
use lock_testkit::{PostgresServer, eventually};

use crate::{Shared, client, jobs};

const TABLE: &str = "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL, \
     lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, \
     locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))";

/// A database with the table and a user who may write to it, and without this library's schema.
pub(crate) async fn postgres() -> (PostgresServer, Shared) {
    let server = PostgresServer::bare().await;
    server.run(TABLE).await;
    let grant = "CREATE ROLE jobs LOGIN; GRANT SELECT, INSERT, UPDATE ON shedlock TO jobs";
    server.run(grant).await;
    let port = server.port();
    let shared = Shared {
        url: url(&server, ""),
        provider: vec![
            "postgres".to_owned(),
            format!("jdbc:postgresql://127.0.0.1:{port}/postgres?user=jobs"),
        ],
    };
    (server, shared)
}

pub(crate) fn url(server: &PostgresServer, options: &str) -> String {
    url_at(server.port(), options)
}

pub(crate) fn url_at(port: u16, options: &str) -> String {
    format!("postgres://jobs@127.0.0.1:{port}/postgres?layout=shedlock{options}")
}

#[tokio::test]
async fn a_job_in_java_and_one_in_rust_skip_each_other() {
    let (_server, shared) = postgres().await;
    jobs::each_skips_what_the_other_has(&shared, "ShedLock on ").await;
}

#[tokio::test]
async fn what_either_keeps_at_least_is_kept_from_the_other() {
    let (_server, shared) = postgres().await;
    jobs::what_either_keeps_at_least_is_kept_from_the_other(&shared).await;
}

#[tokio::test]
async fn the_death_of_either_frees_its_lock_at_the_end_of_its_lease() {
    let (_server, shared) = postgres().await;
    jobs::a_death_frees_it_at_the_end_of_its_lease(&shared).await;
}

#[tokio::test]
async fn either_extends_its_own_lock_and_no_other() {
    let (_server, shared) = postgres().await;
    jobs::either_can_extend_its_own_and_only_that(&shared).await;
}

#[tokio::test]
async fn both_take_turns_and_never_at_once() {
    let (_server, shared) = postgres().await;
    jobs::both_take_turns_and_never_at_once(&shared).await;
}

#[tokio::test]
async fn rows_are_those_of_shedlock_in_utc_whatever_the_time_zone_of_the_session() {
    let (server, _) = postgres().await;
    server
        .run("ALTER ROLE jobs SET timezone = 'Asia/Tokyo'")
        .await;
    let client = client(&url(&server, "&namespace=shop")).await;
    let guard = client.lock("report").acquire().await.unwrap();
    let row = "SELECT count(*) FROM shedlock WHERE name = 'shop:report' AND locked_by LIKE '%:%' \
               AND abs(extract(epoch FROM locked_at - timezone('utc', now()))) < 20 \
               AND extract(epoch FROM lock_until - locked_at) BETWEEN 29 AND 31";
    assert_eq!(server.number(row).await, 1);
    guard.release().await.unwrap();
    let freed = "SELECT count(*) FROM shedlock WHERE name = 'shop:report' \
                 AND lock_until <= timezone('utc', now())";
    assert_eq!(server.number(freed).await, 1, "the row stays");
    assert!(client.lock("report").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_table_that_is_not_as_it_must_be_is_refused_at_connect() {
    let (server, shared) = postgres().await;
    for (change, back, says) in [
        (
            "ALTER TABLE shedlock RENAME TO jobs_locked",
            "ALTER TABLE jobs_locked RENAME TO shedlock",
            "CREATE TABLE shedlock",
        ),
        (
            "ALTER TABLE shedlock ALTER lock_until TYPE timestamptz",
            "ALTER TABLE shedlock ALTER lock_until TYPE timestamp",
            "lock_until is of the type timestamp with time zone",
        ),
        (
            "ALTER TABLE shedlock RENAME locked_by TO holder",
            "ALTER TABLE shedlock RENAME holder TO locked_by",
            "locked_by is not there",
        ),
        // It rounds: a lock would be free half a second early.
        (
            "ALTER TABLE shedlock ALTER lock_until TYPE timestamp(0)",
            "ALTER TABLE shedlock ALTER lock_until TYPE timestamp",
            "lock_until is of the type timestamp(0) without time zone, which is rounded",
        ),
        (
            "ALTER TABLE shedlock ALTER locked_at TYPE timestamp(1)",
            "ALTER TABLE shedlock ALTER locked_at TYPE timestamp",
            "ALTER locked_at TYPE timestamp(3)",
        ),
        (
            "ALTER TABLE shedlock DROP CONSTRAINT shedlock_pkey",
            "ALTER TABLE shedlock ADD PRIMARY KEY (name)",
            "primary key",
        ),
        (
            "ALTER TABLE shedlock DROP CONSTRAINT shedlock_pkey, \
             ADD PRIMARY KEY (name) DEFERRABLE",
            "ALTER TABLE shedlock DROP CONSTRAINT shedlock_pkey, ADD PRIMARY KEY (name)",
            "deferrable",
        ),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indrelid = 'shedlock'::regclass",
            "UPDATE pg_index SET indisvalid = true WHERE indrelid = 'shedlock'::regclass",
            "primary key",
        ),
        (
            "REVOKE UPDATE ON shedlock FROM jobs",
            "GRANT UPDATE ON shedlock TO jobs",
            "GRANT SELECT, INSERT, UPDATE",
        ),
    ] {
        server.run(change).await;
        let error = LockClient::builder().url(&shared.url).connect().await;
        let error = error.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert!(error.to_string().contains(says), "{change}: {error}");
        server.run(back).await;
    }
    let client = client(&shared.url).await;
    let long = "x".repeat(65);
    let error = client.lock(&*long).acquire().await.unwrap_err();
    assert!(
        error.to_string().contains("character varying(64)"),
        "{error}"
    );
    server.run("REVOKE UPDATE ON shedlock FROM jobs").await;
    let error = client.lock("report").acquire().await.unwrap_err();
    assert!(
        error.to_string().contains("INSERT, UPDATE ON shedlock TO"),
        "{error}"
    );
    server.run("DROP TABLE shedlock").await;
    let error = client.lock("report").acquire().await.unwrap_err();
    assert!(
        error.to_string().contains("CREATE TABLE shedlock"),
        "{error}"
    );
}

#[tokio::test]
async fn a_layout_that_postgresql_has_not_is_refused() {
    let (server, _) = postgres().await;
    for layout in ["redisson", "timestamp"] {
        let url = server.url() + &format!("?layout={layout}");
        let error = LockClient::builder().url(&url).connect().await.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert!(error.to_string().contains("PostgreSQL"), "{error}");
    }
    let client = client(&url(&server, "")).await;
    let error = client.lock("k").fenced().acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Config { .. }), "{error}");
}

/// What is dropped while it is under way is undone, and not overtaken by that.
#[tokio::test]
async fn a_dropped_acquire_leaves_no_lock() {
    let (server, shared) = postgres().await;
    let client = client(&shared.url).await;
    for round in 0..20 {
        let key = format!("job{round}");
        let acquire = client.lock(&*key).acquire();
        // Its statement is sent, and the answer has not come.
        let _ = tokio::time::timeout(std::time::Duration::from_micros(300), acquire).await;
        lock_testkit::eventually("it is free", async || {
            client.inspect(&*key).await.unwrap().holder.is_none()
        })
        .await;
        assert!(client.lock(&*key).try_acquire().await.unwrap().is_some());
    }
    drop(server);
}

#[tokio::test]
async fn a_view_has_the_jobs_of_java_beside_the_clients_own_locks() {
    let server = PostgresServer::start().await;
    server.run(TABLE).await;
    let client = client(&server.url()).await;
    let jobs = client.with_layout(Layout::ShedLock);
    let own = client.lock("report").acquire().await.unwrap();
    let job = jobs.lock("report").acquire().await.unwrap();
    let rows = "SELECT count(*) FROM shedlock WHERE lock_until > now() AT TIME ZONE 'UTC'";
    assert_eq!(server.number(rows).await, 1);
    assert!(jobs.lock("report").try_acquire().await.unwrap().is_none());
    job.release().await.unwrap();
    assert!(own.is_held());
    let refused = client.with_layout(Layout::Redisson).lock("k").acquire();
    let refused = refused.await.unwrap_err();
    assert!(matches!(refused, LockError::Config { .. }), "{refused}");
    assert!(refused.to_string().contains("PostgreSQL"), "{refused}");
    client.shutdown(Duration::from_secs(5)).await;
    let ended = jobs.lock("report").acquire().await;
    assert!(matches!(ended, Err(LockError::Shutdown)), "{ended:?}");
}

#[tokio::test]
async fn a_holder_whose_name_a_terminal_acts_on_is_escaped() {
    let (server, shared) = postgres().await;
    server
        .run(
            "INSERT INTO shedlock SELECT 'report', now + interval '1 hour', now,
                 E'vm\\n\\x1b[31mERROR forged'
             FROM (SELECT timezone('utc', clock_timestamp()) AS now) AS t",
        )
        .await;
    let client = client(&shared.url).await;
    let lock = client
        .lock("report")
        .wait(std::time::Duration::from_millis(50));
    let error = lock.acquire().await.unwrap_err().to_string();
    assert!(error.contains(r"vm\n\u{1b}[31mERROR forged"), "{error:?}");
    assert!(!error.contains(char::is_control), "{error:?}");
}

/// The server's clock is an hour ahead of what sessions were told that began before.
#[tokio::test]
async fn a_client_goes_on_when_the_clock_of_its_server_was_set() {
    let (server, _) = postgres().await;
    server
        .run(
            "CREATE SCHEMA shifted; GRANT USAGE ON SCHEMA shifted TO jobs;
             CREATE TABLE shifted.step (at timestamptz); GRANT SELECT ON shifted.step TO jobs;
             CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
                 SELECT pg_catalog.clock_timestamp() + count(*) * interval '1 hour'
                 FROM shifted.step JOIN pg_catalog.pg_stat_activity ON backend_start < at
                 WHERE pid = pg_catalog.pg_backend_pid() $$;
             ALTER ROLE jobs SET search_path = shifted, pg_catalog, public",
        )
        .await;
    let client = client(&url(&server, "")).await;
    client.lock("before").run(async {}).await.unwrap();
    server
        .run("INSERT INTO shifted.step SELECT pg_catalog.clock_timestamp()")
        .await;
    let guard = client.lock("report").try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
}

/// Nothing but the question whether it is, as a probe asks it.
#[tokio::test]
async fn a_client_without_requests_is_connected_again_when_its_server_is() {
    let (server, shared) = postgres().await;
    let client = client(&shared.url).await;
    // What it asks by itself at the beginning is answered.
    client.health().await.unwrap();
    server.stop().await;
    eventually("it is told", async || !client.stats().connected).await;
    server.restart().await;
    eventually("it is connected", async || client.stats().connected).await;
}

/// The ends of connections.
#[derive(Debug)]
struct Ends(Arc<AtomicUsize>);

impl Observer for Ends {
    fn observe(&self, event: &Event<'_>) {
        if let What::Disconnected { .. } = event.what {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A client of jobs whose sessions last for a second, and its provider, which refuses at will.
struct ShortSessions {
    server: PostgresServer,
    client: LockClient,
    ends: Arc<AtomicUsize>,
    refuses: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
}

impl ShortSessions {
    async fn start() -> Self {
        let (server, shared) = postgres().await;
        let (ends, refused) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let refuses = Arc::<AtomicBool>::default();
        let (in_vain, counted) = (Arc::clone(&refuses), Arc::clone(&refused));
        let client = LockClient::builder()
            .url(shared.url.replace("jobs@", ""))
            .observer(Ends(Arc::clone(&ends)))
            .connect_timeout(Duration::from_secs(10))
            .command_timeout(Duration::from_secs(5))
            .credentials(move || {
                std::future::ready(match in_vain.load(Ordering::SeqCst) {
                    true => {
                        counted.fetch_add(1, Ordering::SeqCst);
                        Err(io::Error::other("no token"))
                    }
                    false => Ok(Credentials::new("jobs", "none").valid_for(Duration::from_secs(1))),
                })
            });
        Self {
            server,
            client: client.connect().await.unwrap(),
            ends,
            refuses,
            refused,
        }
    }

    fn ends(&self) -> usize {
        self.ends.load(Ordering::SeqCst)
    }
}

/// Sessions of ten minutes are replaced in the same way.
#[tokio::test]
async fn a_client_without_requests_stays_connected_while_its_sessions_are_replaced() {
    let short = ShortSessions::start().await;
    let newest = "SELECT coalesce(max(date_part('epoch', backend_start) * 1000), 0)::bigint
        FROM pg_stat_activity WHERE usename = 'jobs'";
    let mut sessions = HashSet::new();
    eventually("several sessions have been there", async || {
        assert!(short.client.stats().connected);
        sessions.insert(short.server.number(newest).await);
        sessions.len() > 4
    })
    .await;
    assert_eq!(short.ends(), 0);
}

#[tokio::test]
async fn a_session_that_can_not_be_replaced_is_used_on_and_its_end_is_told() {
    let short = ShortSessions::start().await;
    short.refuses.store(true, Ordering::SeqCst);
    eventually("others are refused", async || {
        assert!(short.client.stats().connected);
        short.client.lock("k").run(async {}).await.unwrap();
        short.refused.load(Ordering::SeqCst) > 1
    })
    .await;
    assert_eq!(short.ends(), 0);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'jobs'";
    short.server.run(end).await;
    eventually("its end is told", async || {
        !short.client.stats().connected && short.ends() == 1
    })
    .await;
    short.refuses.store(false, Ordering::SeqCst);
    eventually("it is connected", async || short.client.stats().connected).await;
}
