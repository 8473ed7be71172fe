//! What a server runs out of.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, Rate};
use lock_store::{Acquire, Claim, ClientId, Clock, Instant, Listener, Owner, Permits, Queue};
use lock_testkit::{Heard, PostgresServer, StoreUnderTest, eventually, postgres_has_standbys};
use tokio::task::JoinSet;

use crate::client;

/// A commit that waits for a standby goes on when its client has left, and keeps its session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_stand_still_take_twice_the_connections_at_most() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(true).await;
    let url = format!("{}?connections=3", primary.app_url());
    let client = LockClient::builder().url(url);
    let client = client.connect_timeout(Duration::from_secs(10));
    let client = client.connect().await.unwrap();
    let guard = client.lock("before").acquire().await.unwrap();
    guard.release().await.unwrap();
    standby.pause();
    let mut requests = JoinSet::new();
    for number in 0..12 {
        let client = client.clone();
        requests.spawn(async move {
            for again in 0..6 {
                let lock = client.lock(format!("{number}:{again}"));
                let refused = lock.wait(Duration::ZERO).acquire().await;
                assert!(
                    matches!(refused, Err(LockError::Unavailable { .. })),
                    "{refused:?}"
                );
            }
        });
    }
    requests.join_all().await;
    // And the one that listens.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
    assert!(primary.number(sessions).await <= 2 * 3 + 1);
    standby.resume();
    eventually("it is used again", async || {
        let lock = client.lock("after").wait(Duration::ZERO);
        lock.run(async {}).await.is_ok()
    })
    .await;
}

/// Whoever watches a server that stands still must not use up its sessions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_how_it_is_while_commits_stand_still_takes_no_more_sessions() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(true).await;
    let url = format!("{}?connections=1", primary.app_url());
    let client = client(&url).await;
    let guard = client.lock("before").acquire().await.unwrap();
    guard.release().await.unwrap();
    standby.pause();
    for number in 0..10 {
        let lock = client.lock(format!("{number}")).wait(Duration::ZERO);
        let (refused, _) = tokio::join!(lock.acquire(), client.health());
        assert!(refused.is_err(), "{refused:?}");
    }
    // And the one that listens.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
    assert!(primary.number(sessions).await <= 2 + 1);
    standby.resume();
}

/// PostgreSQL says `committed locally` and goes on. What takes over may not have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_made_to_wait_no_longer_is_no_grant() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(true).await;
    let client = LockClient::builder().url(primary.app_url());
    let client = client.command_timeout(Duration::from_secs(3));
    let client = client.connect().await.unwrap();
    let guard = client.lock("before").acquire().await.unwrap();
    guard.release().await.unwrap();
    standby.pause();
    let request = tokio::spawn(client.lock("k").wait(Duration::ZERO).acquire());
    let waits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    eventually("its commit waits", async || {
        primary.number(&format!("SELECT count(*) {waits}")).await == 1
    })
    .await;
    let cancel = format!("SELECT pg_cancel_backend(pid) {waits}");
    primary.run(&cancel).await;
    let refused = request.await.unwrap();
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    standby.resume();
    eventually("it is used again", async || {
        let lock = client.lock("k").wait(Duration::ZERO);
        lock.run(async {}).await.is_ok()
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_requests_are_told_so_and_all_goes_on_when_there_is_space() {
    let Some(disk) = lock_testkit::SmallDisk::mounted(160 << 20) else {
        return;
    };
    let server = PostgresServer::within(disk.path()).await;
    let client = client(&server.app_url()).await;
    let lock = client.lock("held").lease(Duration::from_secs(600));
    let held = lock.renew(false).acquire().await.unwrap();
    disk.fill();
    let (_guards, error) = disk.until_refused(&client, 100_000).await;
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    let said = error.to_string();
    // Where it could not write to its log, it has crashed.
    assert!(said.contains("is full") || server.has_ended(), "{said}");
    disk.free();
    if server.has_ended() {
        server.restart().await;
    }
    eventually("it takes locks again", async || {
        client.lock("again").run(async {}).await.is_ok()
    })
    .await;
    assert!(client.lock("held").try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    assert!(client.lock("held").try_acquire().await.unwrap().is_some());
}

/// A name is in an index, whose rows have less than a third of a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_namespace_and_key_have_room_in_the_tables() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let view = client.namespaced(&"n".repeat(128));
    let key = "k".repeat(512);
    let lock = || view.lock(&*key).wait(Duration::from_millis(100)).fenced();
    let guard = lock().acquire().await.unwrap();
    assert!(lock().acquire().await.unwrap_err().is_busy());
    guard.release().await.unwrap();
    // Of the one who gave up, nothing is under way any more.
    let taken = "SELECT (SELECT count(*) FROM lock_store.place)
        + (SELECT count(*) FROM lock_store.hold WHERE owner IS NOT NULL)";
    eventually("nobody has it", async || server.number(taken).await == 0).await;
    view.latch(&*key).set(1).await.unwrap();
    let rate = Rate::per_second(1);
    view.rate_limiter(&*key, rate).acquire().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_set_back_costs_no_more_than_the_bucket() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let limiter = client.rate_limiter("k", Rate::per_second(20).burst(1));
    limiter.acquire().await.unwrap();
    // Written an hour from now: the clock has gone back since.
    server
        .run("UPDATE lock_store.rate SET at = at + 3600000000000, debt = 50000000")
        .await;
    assert!(limiter.acquire().await.is_err());
    eventually("it passes soon", async || {
        limiter.try_acquire().await.unwrap().passed()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_set_back_costs_no_more_than_the_window() {
    let server = PostgresServer::start().await;
    let client = client(&server.app_url()).await;
    let limiter = client.rate_limiter("k", Rate::at_most(2, Duration::from_millis(500)));
    limiter.permits(2).await.unwrap();
    server
        .run("UPDATE lock_store.pass_log SET at = at + 3600000000, ends = ends + 3600000000")
        .await;
    assert!(limiter.acquire().await.is_err());
    eventually("it passes soon", async || {
        limiter.try_permits(2).await.unwrap().passed()
    })
    .await;
}

/// A client that ends has places, if its own way to give them up was cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_places_of_a_client_that_ends_go_to_those_behind_them() {
    let server = PostgresServer::start().await;
    let waits = client(&server.app_url()).await;
    let held = waits.rw_lock("k").read().acquire().await.unwrap();
    let heard = std::sync::Arc::<Heard>::default();
    let listener: std::sync::Arc<dyn Listener> = heard.clone();
    let clock = Clock::new(tokio::runtime::Handle::current());
    let under_test: &dyn StoreUnderTest = &server;
    let gone = under_test.store(ClientId(7), &listener, clock);
    let owner = Owner {
        client: ClientId(7),
        request: 1,
    };
    let claim = Claim::new("k".into(), owner, Some(Permits::WRITE));
    let mut writer = Acquire::new(claim, Duration::from_secs(10));
    writer.queue = Queue::Join;
    let by = || Instant::now() + Duration::from_secs(10);
    gone.acquire(writer, by()).await.unwrap();
    let readers: JoinSet<_> = (0..3)
        .map(|_| {
            waits
                .rw_lock("k")
                .read()
                .wait(Duration::from_secs(60))
                .acquire()
        })
        .collect();
    eventually("all wait", async || {
        waits.inspect("k").await.unwrap().waiting == 4
    })
    .await;
    gone.finish(by()).await;
    let left = std::time::Instant::now();
    let entered = readers.join_all().await;
    assert!(entered.iter().all(Result::is_ok), "{entered:?}");
    assert!(
        left.elapsed() < Duration::from_millis(700),
        "{:?}: by a poll",
        left.elapsed()
    );
    drop((held, gone));
}
