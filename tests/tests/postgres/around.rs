//! What stands around a PostgreSQL server: a pooler, and standbys that take over.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{Layout, LockClient, LockError};
use lock_testkit::{
    PgBouncer, PostgresServer, Proxy, ShedlockTable, eventually, postgres_has_standbys,
};
use tokio::task::JoinSet;

use crate::checked::check;
use crate::{builder, client};

/// Two clients of sixteen tasks want one lock.
async fn exclude(clients: [LockClient; 2]) {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for client in clients {
        for _ in 0..16 {
            let (lock, inside) = (client.lock("k"), Arc::clone(&inside));
            let lock = lock.wait(Duration::from_secs(60)).fenced();
            tasks.spawn(async move {
                let guard = lock.acquire().await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                let token = guard.fencing_token().unwrap();
                guard.release().await.unwrap();
                token
            });
        }
    }
    let mut tokens = tasks.join_all().await;
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 32);
}

/// A session for each client, one for all, and what is left of others in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_in_any_mode_one_holds_at_a_time() {
    let server = PostgresServer::start().await;
    for settings in [
        "pool_mode = session\ndefault_pool_size = 40\nserver_reset_query = DISCARD ALL",
        "default_pool_size = 1\nserver_reset_query = DISCARD ALL\nserver_reset_query_always = 1",
        "pool_mode = statement\nclient_idle_timeout = 1\nserver_lifetime = 1",
    ] {
        let pooler = PgBouncer::start_with(&server, settings).await;
        exclude([client(&pooler.url()).await, client(&pooler.url()).await]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_in_transaction_mode_locks_work_and_waiters_hear() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    let url = format!("{}?listen=127.0.0.1:{}", pooler.url(), server.port());
    let (one, two) = (client(&url).await, client(&url).await);
    exclude([one.clone(), two.clone()]).await;
    // The holder is asked who it is: clients hear each other past the pooler.
    let _held = one.lock("held").acquire().await.unwrap();
    let busy = two
        .lock("held")
        .wait(Duration::from_secs(3))
        .acquire()
        .await;
    let said = busy.unwrap_err().to_string();
    let name = format!("vm:{}", std::process::id());
    assert!(
        said.contains(&format!(":{}", std::process::id())),
        "{said} {name}"
    );
    let sessions = "SELECT count(*) FROM pg_stat_activity
        WHERE usename = 'app' AND query NOT LIKE 'LISTEN%' AND query NOT LIKE '%advisory%'";
    assert!(server.number(sessions).await <= PgBouncer::SESSIONS + 2);
}

/// The sessions behind a pooler don't know each other's statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_that_the_url_says_nothing_of_locks_exclude() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    exclude([client(&pooler.url()).await, client(&pooler.url()).await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_listen_asks_again_and_again() {
    let server = PostgresServer::start().await;
    let pooler = PgBouncer::start(&server).await;
    let url = format!("{}?listen=off", pooler.url());
    exclude([client(&url).await, client(&url).await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_standby_that_takes_over_knows_every_lock_and_tokens_rise() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(true).await;
    let url = format!(
        "postgres://app@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        primary.port(),
        standby.port()
    );
    let (one, two) = (client(&url).await, client(&url).await);
    let lock = one.lock("k").lease(Duration::from_secs(60)).renew(true);
    let guard = lock.fenced().acquire().await.unwrap();
    let token = guard.fencing_token();
    primary.kill();
    let refused = two.lock("k").wait(Duration::ZERO).acquire().await;
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    standby.promote().await;
    eventually("both are connected again", async || {
        one.health().await.is_ok() && two.health().await.is_ok()
    })
    .await;
    assert!(guard.is_held());
    let taken = two.lock("k").try_acquire().await.unwrap();
    assert!(taken.is_none(), "{taken:?}");
    guard.release().await.unwrap();
    let next = two.lock("k").fenced().acquire().await.unwrap();
    assert!(next.fencing_token() > token);
}

/// Two clients may hold a lock then. The data that one of them guards is safe all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_standby_does_not_know_fails_at_its_check() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(false).await;
    let one = client(&primary.app_url()).await;
    standby.kill();
    let lock = one.lock("k").lease(Duration::from_secs(60)).renew(false);
    let guard = lock.fenced().acquire().await.unwrap();
    primary.kill();
    standby.restart().await;
    standby.promote().await;
    let two = client(&standby.app_url()).await;
    let next = two.lock("k").fenced().acquire().await.unwrap();
    assert!(guard.is_held() && next.fencing_token() > guard.fencing_token());
    let session = standby.session().await;
    let refused = session.simple_query(&check(&guard)).await.unwrap_err();
    let said = refused.as_db_error().unwrap();
    assert!(
        said.message().contains("not held with this fencing token"),
        "{said}"
    );
    session.simple_query(&check(&next)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asynchronous_standby_is_a_finding() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let _standby = primary.standby(false).await;
    let client = client(&primary.app_url()).await;
    eventually("the standby follows", async || {
        let health = client.health().await.unwrap();
        let mut findings = health.servers[0].findings.iter();
        findings.any(|one| one.to_string().contains("synchronous"))
    })
    .await;
}

/// Else it would end the hold of whoever has the lock by then.
async fn a_force_release_that_was_given_up_ends_no_later_hold(
    server: PostgresServer,
    layout: Layout,
) {
    let address = SocketAddr::from(([127, 0, 0, 1], server.port()));
    let proxy = Proxy::start_postgres(address).await;
    let url = format!(
        "{}?application_name=operator",
        server.app_url_at(proxy.addr())
    );
    let operator = builder(&url).layout(layout);
    let operator = operator.command_timeout(Duration::from_secs(1));
    let operator = operator.connect().await.unwrap();
    // The server knows the statement.
    assert!(!operator.force_release("k").await.unwrap());
    proxy.freeze();
    operator.force_release("k").await.unwrap_err();
    drop(operator);
    let client = builder(&server.app_url()).layout(layout);
    let guard = client.connect().await.unwrap().lock("k").acquire().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    proxy.thaw();
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'operator'";
    eventually("all that it sent is done", async || {
        server.number(sessions).await == 0
    })
    .await;
    guard.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_force_release_that_comes_too_late_ends_no_hold() {
    let server = PostgresServer::start().await;
    a_force_release_that_was_given_up_ends_no_later_hold(server, Layout::Native).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_in_a_table_of_shedlock_ends_none_either() {
    let server = ShedlockTable::server().await;
    a_force_release_that_was_given_up_ends_no_later_hold(server, Layout::ShedLock).await;
}

/// The list of those that a release has served comes with its reply, and is lost with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_whose_reply_is_lost_costs_all_that_it_served_one_poll_together() {
    let server = PostgresServer::start().await;
    let address = SocketAddr::from(([127, 0, 0, 1], server.port()));
    let proxy = Proxy::start_postgres(address).await;
    let url = format!("{}?connections=1", server.app_url_at(proxy.addr()));
    let holds = client(&url).await;
    // The server knows all statements: none needs a round trip before it is carried out.
    holds.rw_lock("k").write().run(async {}).await.unwrap();
    let waits = client(&server.app_url()).await;
    let writer = holds.rw_lock("k").write().acquire().await.unwrap();
    let mut readers = JoinSet::new();
    for _ in 0..12 {
        let read = waits.rw_lock("k").read().wait(Duration::from_secs(60));
        readers.spawn(async move { (read.acquire().await.unwrap(), Instant::now()) });
    }
    eventually("all wait", async || {
        waits.inspect("k").await.unwrap().waiting == 12
    })
    .await;
    proxy.drop_replies(true);
    let released = Instant::now();
    drop(writer);
    let entered = readers.join_all().await;
    let last = entered.iter().map(|(_, at)| *at).max().unwrap();
    assert!(
        last - released < Duration::from_secs(5),
        "{:?}: not one poll each",
        last - released
    );
    proxy.drop_replies(false);
}
