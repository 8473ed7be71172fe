//! Poolers that give each transaction to any session, as pgbouncer does.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError};
use lock_testkit::{
    ChildProcess, Log, PgBouncer, Port, PostgresServer, Proxy, eventually, postgres_has_standbys,
};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::client;

const CALLS: usize = 12;

/// Each session of the pooler, with an open transaction that keeps it.
async fn all_sessions(pooler: &PgBouncer) -> Vec<Client> {
    let mut sessions = Vec::new();
    for _ in 0..PgBouncer::SESSIONS {
        let (session, driver) = tokio_postgres::connect(&pooler.url(), NoTls).await.unwrap();
        tokio::spawn(driver);
        session.batch_execute("BEGIN").await.unwrap();
        sessions.push(session);
    }
    sessions
}

async fn names(session: &Client) -> Vec<String> {
    let all = "SELECT name FROM pg_prepared_statements";
    let rows = session.simple_query(all).await.unwrap().into_iter();
    rows.filter_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
    .collect()
}

/// Several at once, so that they are spread over the sessions.
async fn inspect_often(client: &LockClient, key: &'static str) {
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let client = client.clone();
        calls.spawn(async move { client.inspect(key).await });
    }
    for found in calls.join_all().await {
        assert!(found.unwrap().holder.is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_a_stranger_gave_to_another_statement_is_never_used() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    let holder = client(&server.app_url()).await;
    let lock = holder.lock("k").lease(Duration::from_secs(600));
    let guard = lock.renew(false).acquire().await.unwrap();
    let other = client(&pooler.url()).await;
    inspect_often(&other, "k").await;
    let sessions = all_sessions(&pooler).await;
    let mut all = Vec::new();
    for session in &sessions {
        all.extend(names(session).await);
    }
    for session in &sessions {
        let known = names(session).await;
        // What the driver of an operator's tool may have there.
        for name in all.iter().filter(|name| !known.contains(name)) {
            let theirs = "AS SELECT held, told, tokens FROM lock_store.force_release($1)";
            let theirs = format!("PREPARE {name}(bytea) {theirs}");
            session.batch_execute(&theirs).await.unwrap();
        }
        session.batch_execute("COMMIT").await.unwrap();
    }
    for _ in 0..5 {
        inspect_often(&other, "k").await;
    }
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert_eq!(all, Vec::<String>::new(), "there is none");
}

/// Each process knows what its calls must say, and ends if they say anything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_behind_one_pooler_never_carry_out_each_others_calls() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    let held = client(&server.app_url()).await.lock("k");
    let lock = held.lease(Duration::from_secs(600)).renew(false);
    let guard = lock.acquire().await.unwrap();
    let program = env!("CARGO_BIN_EXE_mixing-worker");
    let url = pooler.url();
    let start = |key| ChildProcess::start(program, &[&url, key, "5000"]);
    let (mut one, mut two) = (start("one"), start("two"));
    for process in [&mut one, &mut two] {
        let rounds = process.wait_for("mixed").await.text;
        assert!(rounds.parse::<usize>().unwrap() > 20, "{rounds}");
    }
    assert_eq!(server.number(HELD).await, 1);
    drop(guard);
}

const HELD: &str = "SELECT count(*) FROM lock_store.hold
    WHERE name = 'lock:k' AND owner IS NOT NULL AND ends > clock_timestamp()";

/// The pooler says that its server crashed: what was under way may be on disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_the_pooler_can_not_tell_is_undone() {
    if !postgres_has_standbys() {
        return;
    }
    let server = PostgresServer::start().await;
    let standby = server.standby(true).await;
    let pooler = PgBouncer::start(&server).await;
    let url = format!("{}?listen=off", pooler.url());
    // Enough for a busy machine: a command that comes too late is not carried out.
    let timeout = Duration::from_secs(10);
    let builder = LockClient::builder().url(url).command_timeout(timeout);
    let client = builder.connect().await.unwrap();
    client.lock("before").run(async {}).await.unwrap();
    standby.pause();
    let lock = client
        .lock("k")
        .lease(Duration::from_secs(600))
        .renew(false);
    let waits = tokio::spawn(lock.wait(Duration::ZERO).acquire());
    // It is on the disk, and nobody has been told.
    let commits = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event = 'SyncRep' AND query LIKE '%lock_store.acquire%'";
    eventually("the grant waits for the standby", async || {
        server.number(commits).await == 1
    })
    .await;
    server.kill();
    let refused = waits.await.unwrap();
    let is_unavailable = matches!(refused, Err(LockError::Unavailable { .. }));
    assert!(is_unavailable, "{refused:?}");
    server.restart().await;
    standby.resume();
    eventually("it is undone", async || server.number(HELD).await == 0).await;
}

/// The mean time from a release to the next holder.
async fn hand_over(one: &LockClient, two: &LockClient) -> Duration {
    let mut sum = Duration::ZERO;
    for _ in 0..10 {
        let guard = one.lock("k").acquire().await.unwrap();
        let waiter = two.lock("k");
        let waits = tokio::spawn(async move {
            waiter.acquire().await.unwrap().release().await.unwrap();
            Instant::now()
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let released = Instant::now();
        guard.release().await.unwrap();
        sum += waits.await.unwrap().saturating_duration_since(released);
    }
    sum / 10
}

async fn listening_finding(client: &LockClient) -> Option<String> {
    let health = client.health().await.unwrap();
    let mut findings = health.servers[0].findings.iter().map(ToString::to_string);
    findings.find(|finding| finding.contains("`listen="))
}

#[tokio::test]
async fn a_subscription_through_a_pooler_is_found_out_and_those_who_wait_ask() {
    let log = Log::default();
    let writer = log.clone();
    let logged = tracing_subscriber::fmt().with_ansi(false);
    // For the clients' threads, too; those of other tests log there as well.
    logged.with_writer(move || writer.clone()).init();
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    let (one, two) = (client(&pooler.url()).await, client(&pooler.url()).await);
    eventually("both know it", async || {
        listening_finding(&one).await.is_some() && listening_finding(&two).await.is_some()
    })
    .await;
    let took = hand_over(&one, &two).await;
    assert!(took < Duration::from_millis(250), "{took:?}");
    let (text, server) = (log.text(), format!("server={}", pooler.address()));
    let about = text.lines().filter(|line| line.contains(&server));
    let warnings = about.filter(|line| line.contains("`listen=")).count();
    assert_eq!(warnings, 2, "one of each client: {text}");
    // What it subscribed to before is not left to others.
    for session in all_sessions(&pooler).await {
        let channels = "SELECT count(*) FROM pg_listening_channels()";
        let left: i64 = session.query_one(channels, &[]).await.unwrap().get(0);
        assert_eq!(left, 0);
    }
}

/// Each session that it keeps for a transaction of its own is kept from those who lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_finds_out_that_it_hears_nothing_takes_few_sessions() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    let proxy = Proxy::start_postgres(pooler.address().parse().unwrap()).await;
    let url = format!("{}?connections=1", server.app_url_at(proxy.addr()));
    let client = client(&url).await;
    eventually("it knows it", async || {
        listening_finding(&client).await.is_some()
    })
    .await;
    // One for locks, one to listen on, and some if other sessions were used meanwhile.
    let connections = proxy.connections();
    assert!(connections < 8, "{connections}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_past_the_pooler_has_no_finding_and_who_can_not_has_one() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    let gone = Port::free();
    let over_v6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    for (listen, is_fine) in [
        (format!("127.0.0.1:{}", server.port()), true),
        (format!("[::1]:{}", server.port()), over_v6),
        ("off".to_owned(), true),
        (format!("[::1]:{}", gone.number()), false),
        (format!("127.0.0.1:{}", gone.number()), false),
    ] {
        let client = client(&format!("{}?listen={listen}", pooler.url())).await;
        eventually("it is known", async || {
            listening_finding(&client).await.is_none() == is_fine
        })
        .await;
        client.lock("k").run(async {}).await.unwrap();
        assert_eq!(
            listening_finding(&client).await.is_none(),
            is_fine,
            "{listen}"
        );
    }
}
