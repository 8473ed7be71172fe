//! Sessions: how long a hold can be trusted, and what is left of a client that has gone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::observe::{Event, What};
use lock_runtime::{Guard, Layout, LockClient, LockError, LostReason};
use lock_testkit::{Proxy, ZooKeeperEnsemble, eventually, eventually_within, until_served};

use crate::{LONG, builder, children, client, worker};

/// Of the sessions here.
const SESSION: Duration = Duration::from_secs(3);
const OPTIONS: &str = "?tick=500ms&session=3s";

pub(super) async fn behind_a_proxy() -> (ZooKeeperEnsemble, Proxy) {
    let servers = ZooKeeperEnsemble::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    (servers, proxy)
}

#[tokio::test]
async fn a_hold_is_over_for_its_client_before_the_server_ends_the_session() {
    let (servers, proxy) = behind_a_proxy().await;
    // Where the tick is not known, half of the session is taken off: what is left is what a slow
    // machine may take for an answer.
    let seconds = Duration::from_secs;
    for (known, session) in [("?tick=500ms&session=5s", 5), ("?session=8s", 8)] {
        let session = seconds(session);
        let url = servers.url_at(&[proxy.addr().port()], known);
        let cut_off = client(&url).await;
        let guard = cut_off.lock("k").acquire().await.unwrap();
        // The trust goes on as long as there are answers.
        let until = Instant::now() + seconds(6);
        while Instant::now() < until {
            assert!(guard.is_held(), "{known}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let path = format!("{}/lock/k", servers.chroot());
        let mut looks = servers.session().await;
        proxy.freeze();
        let frozen = Instant::now();
        guard.lost().await;
        let after = frozen.elapsed();
        let there = looks.children(&path).await.len();
        assert_eq!(there, 1, "{known}: after {after:?}");
        looks.close().await;
        assert!(!guard.is_held() && after < session, "{known}: {after:?}");
        let other = client(&servers.url(OPTIONS)).await;
        drop(other.lock("k").acquire().await.unwrap());
        proxy.thaw();
        drop(guard);
        eventually("nothing is left", async || {
            children(&servers, "k").await == 0
        })
        .await;
    }
}

async fn why_lost(guard: &Guard) -> LostReason {
    match guard.extend(SESSION).await {
        Err(LockError::Lost { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Until the end of a fixed lease that was asked for at `began`, and no longer.
async fn lasts_to_its_end(guard: &Guard, began: Instant, lease: Duration, what: &str) {
    assert!(
        guard.remaining() < SESSION,
        "{what}: the session is trusted for less than the lease"
    );
    guard.lost().await;
    let lasted = began.elapsed();
    let reason = why_lost(guard).await;
    assert_eq!(reason, LostReason::Expired, "{what}: after {lasted:?}");
    let least = lease - lease / 50 - Duration::from_millis(10);
    assert!(lasted >= least, "{what}: {lasted:?}");
}

/// Releases a lock when the next request waits for it. What that gets, and since when.
async fn hand_over(
    servers: &ZooKeeperEnsemble,
    before: Guard,
    next: impl Future<Output = Result<Guard, LockError>> + Send + 'static,
) -> (Guard, Instant) {
    let next = tokio::spawn(next);
    let key = before.key().as_str();
    eventually("it waits", async || children(servers, key).await == 2).await;
    let began = Instant::now();
    before.release().await.unwrap();
    (next.await.unwrap().unwrap(), began)
}

/// By a request, an extension, a hand-over, and of several keys at once and one after the other.
#[tokio::test]
async fn a_fixed_lease_that_outlives_the_trust_in_its_session_lasts_to_its_end() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url(OPTIONS);
    let (one, other) = (client(&url).await, client(&url).await);
    let lease = SESSION * 2;
    let asked = async || {
        let began = Instant::now();
        let guard = one.lock("asked").lease(lease).acquire().await.unwrap();
        lasts_to_its_end(&guard, began, lease, "asked").await;
        // It is free then.
        drop(other.lock("asked").acquire().await.unwrap());
    };
    let extended = async || {
        let short = SESSION / 3;
        let guard = one.lock("extended").lease(short).acquire().await.unwrap();
        let began = Instant::now();
        guard.extend(lease).await.unwrap();
        lasts_to_its_end(&guard, began, lease, "extended").await;
    };
    let handed_over = async || {
        let before = other.lock("handed-over").acquire().await.unwrap();
        let next = one.lock("handed-over").lease(lease).acquire();
        let (guard, began) = hand_over(&servers, before, next).await;
        lasts_to_its_end(&guard, began, lease, "handed-over").await;
    };
    let several = async || {
        let before = other.lock("several-1").acquire().await.unwrap();
        let keys = ["several-1", "several-2"];
        let next = one.multi_lock(keys).lease(lease).acquire();
        let (guard, began) = hand_over(&servers, before, next).await;
        lasts_to_its_end(&guard, began, lease, "several").await;
        let began = Instant::now();
        let guard = one.multi_lock(keys).lease(lease).acquire().await.unwrap();
        lasts_to_its_end(&guard, began, lease, "several at once").await;
    };
    tokio::join!(asked(), extended(), handed_over(), several());
}

/// And goes on until it is released, or its fixed lease ends.
#[tokio::test]
async fn tasks_of_one_process_hand_off_a_hold_whose_session_is_trusted_for_less_than_its_lease() {
    let servers = ZooKeeperEnsemble::one().await;
    // However long a task of a slow machine holds the lock.
    let builder = builder(&servers.url(OPTIONS)).local_tenure(64, LONG);
    let client = builder.connect().await.unwrap();
    let passed = async |key: &'static str, fixed: Option<Duration>| {
        let lock = || match fixed {
            Some(lease) => client.lock(key).lease(lease),
            None => client.lock(key),
        };
        let first = lock().acquire().await.unwrap();
        let next = tokio::spawn(lock().acquire());
        eventually("it waits", async || client.stats().waiting > 0).await;
        let began = Instant::now();
        first.release().await.unwrap();
        (next.await.unwrap().unwrap(), began)
    };
    let (guard, _) = passed("renewed", None).await;
    assert_eq!(client.stats().handed_off, 1);
    let lease = SESSION * 2;
    let (fixed, began) = passed("fixed", Some(lease)).await;
    assert_eq!(client.stats().handed_off, 2);
    lasts_to_its_end(&fixed, began, lease, "handed off").await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

/// One whose rest could not be asked for is over before its session can end.
#[tokio::test]
async fn a_fixed_lease_ends_with_the_trust_in_a_session_that_is_silent() {
    let (servers, proxy) = behind_a_proxy().await;
    let cut_off = client(&servers.url_at(&[proxy.addr().port()], OPTIONS)).await;
    let guard = cut_off.lock("k").lease(LONG).acquire().await.unwrap();
    let path = format!("{}/lock/k", servers.chroot());
    let mut looks = servers.session().await;
    proxy.freeze();
    guard.lost().await;
    let there = looks.children(&path).await.len();
    assert_eq!(there, 1, "its session is still there");
    assert_eq!(why_lost(&guard).await, LostReason::NotRenewed);
    proxy.thaw();
}

/// Whoever asks it does not know yet that it has died.
#[tokio::test]
async fn a_letter_to_a_client_that_has_died_is_taken_back() {
    let servers = ZooKeeperEnsemble::one().await;
    let mut session = servers.session().await;
    let all = format!("{}/%mail", servers.chroot());
    let mut killed = worker(&servers.url("")).await;
    let asks = client(&servers.url("")).await;
    killed.send("hold 1 k renew");
    killed.wait_for("held").await;
    killed.kill();
    let busy = asks.lock("k").wait(Duration::from_millis(100)).acquire();
    assert!(matches!(busy.await, Err(LockError::Busy { .. })));
    let mut count = 1;
    let mut highest = 0;
    let began = Instant::now();
    while count > 0 || highest == 0 {
        count = 0;
        for client in session.children(&all).await {
            let letters = session.children(&format!("{all}/{client}")).await;
            count += letters.iter().filter(|name| *name != "here").count();
        }
        highest = highest.max(count);
        assert!(began.elapsed() < LONG, "{count}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    session.close().await;
}

#[tokio::test]
async fn the_locks_of_a_killed_process_are_free_when_its_session_ends() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url(OPTIONS);
    let mut killed = worker(&url).await;
    killed.send("hold 1 k renew");
    killed.wait_for("held").await;
    let other = client(&url).await;
    let waiter = tokio::spawn(other.lock("k").acquire());
    eventually("it waits", async || children(&servers, "k").await == 2).await;
    let began = Instant::now();
    killed.kill();
    drop(
        tokio::time::timeout(LONG, waiter)
            .await
            .unwrap()
            .unwrap()
            .unwrap(),
    );
    let took = began.elapsed();
    assert!(took < SESSION * 3, "{took:?}");
}

#[tokio::test]
async fn a_process_that_stood_still_for_longer_than_its_session_has_lost_its_locks() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url(OPTIONS);
    let mut stopped = worker(&url).await;
    stopped.send("hold 1 k renew ticks");
    stopped.wait_for("tick").await;
    stopped.pause();
    let other = client(&url).await;
    let guard = other.lock("k").acquire().await.unwrap();
    let since = lock_testkit::monotonic_nanos();
    stopped.resume();
    let failed = stopped.wait_for("failed").await;
    assert!(failed.text.contains("Lost"), "{failed:?}");
    for event in stopped.take_events() {
        let Some(tick) = event.text.strip_prefix("tick 1 ") else {
            continue;
        };
        let at: u64 = tick.parse().unwrap();
        assert!(at < since, "its body ran beside the next holder");
    }
    assert!(guard.is_held());
    // It goes on in a new session.
    guard.release().await.unwrap();
    stopped.send("hold 2 k renew");
    stopped.wait_for("held 2").await;
}

/// A client, and how many renewals it has told of.
async fn client_that_counts_renewals(url: &str) -> (LockClient, Arc<AtomicU64>) {
    let renewals = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&renewals);
    let builder = builder(url).observer(move |event: &Event<'_>| {
        if matches!(event.what, What::Renewed { .. }) {
            counted.fetch_add(1, Ordering::AcqRel);
        }
    });
    (builder.connect().await.unwrap(), renewals)
}

/// Restarts the only member, which grants no more than `longest` from then on. Returns after the
/// next renewal of the client's hold.
async fn shorten_sessions(
    servers: &ZooKeeperEnsemble,
    longest: Duration,
    client: &LockClient,
    renewals: &AtomicU64,
) {
    servers.kill_member(0);
    servers.limit_sessions(0, longest);
    servers.restart_member(0).await;
    until_served(client).await;
    let before = renewals.load(Ordering::Acquire);
    eventually_within(LONG, "the hold is renewed", async || {
        renewals.load(Ordering::Acquire) > before
    })
    .await;
}

/// Renewals ask for less than the extension has allowed, and for less than the session has left.
#[tokio::test]
async fn an_extension_ends_with_the_trust_in_a_session_that_was_shortened_meanwhile() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("?tick=500ms&session=120s");
    let (client, renewals) = client_that_counts_renewals(&url).await;
    let lease = SESSION / 2;
    let lock = client.lock("k").lease(lease).renew(true);
    let guard = lock.acquire().await.unwrap();
    guard.extend(SESSION * 30).await.unwrap();
    let longest = SESSION * 4;
    shorten_sessions(&servers, longest, &client, &renewals).await;
    let left = guard.remaining();
    assert!(guard.is_held() && left < longest, "{left:?}");
    guard.release().await.unwrap();
}

/// As while the limit is lowered member by member. The server counts the new time at once.
#[tokio::test]
async fn a_server_that_grants_a_session_less_than_those_before_lowers_the_trust_in_its_holds() {
    let (servers, proxy) = behind_a_proxy().await;
    let url = servers.url_at(&[proxy.addr().port()], "?tick=500ms&session=60s");
    let (cut_off, renewals) = client_that_counts_renewals(&url).await;
    // It outlives the restart.
    let lock = cut_off.lock("k").lease(20 * SESSION).renew(true);
    let guard = lock.acquire().await.unwrap();
    shorten_sessions(&servers, SESSION, &cut_off, &renewals).await;
    let left = guard.remaining();
    assert!(guard.is_held() && left < SESSION, "{left:?}");
    let path = format!("{}/lock/k", servers.chroot());
    let mut looks = servers.session().await;
    proxy.freeze();
    let frozen = Instant::now();
    guard.lost().await;
    let after = frozen.elapsed();
    let there = looks.children(&path).await.len();
    assert_eq!(there, 1, "lost after {after:?}");
    let other = client(&servers.url(OPTIONS)).await;
    drop(other.lock("k").acquire().await.unwrap());
    proxy.thaw();
    drop(guard);
}

/// Only a new session is refused for that. An old one is needed to give back what it has.
#[tokio::test]
async fn what_a_session_holds_that_becomes_shorter_than_three_ticks_is_free_afterwards() {
    let servers = ZooKeeperEnsemble::one().await;
    let holder = client(&servers.url("?tick=1500ms&session=20s")).await;
    let guard = holder.lock("k").lease(20 * SESSION).acquire().await;
    let guard = guard.unwrap();
    servers.kill_member(0);
    servers.limit_sessions(0, Duration::from_secs(4));
    servers.restart_member(0).await;
    drop(guard);
    let other = client(&servers.url("")).await;
    eventually("it is free", async || {
        other.lock("k").try_acquire().await.unwrap().is_some()
    })
    .await;
}

#[tokio::test]
async fn a_waiter_whose_session_ended_waits_on_in_a_new_one() {
    let (servers, proxy) = behind_a_proxy().await;
    let holder = client(&servers.url(OPTIONS)).await;
    let cut_off = client(&servers.url_at(&[proxy.addr().port()], OPTIONS)).await;
    let guard = holder.lock("k").acquire().await.unwrap();
    let waiter = tokio::spawn(cut_off.lock("k").acquire());
    eventually("it waits", async || children(&servers, "k").await == 2).await;
    proxy.freeze();
    eventually("its session ends", async || {
        children(&servers, "k").await == 1
    })
    .await;
    proxy.thaw();
    eventually("it waits again", async || {
        children(&servers, "k").await == 2
    })
    .await;
    guard.release().await.unwrap();
    let next = tokio::time::timeout(LONG, waiter).await.unwrap();
    assert!(next.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_connection_that_is_cut_again_and_again_costs_no_hold_and_leaves_nothing() {
    let (servers, proxy) = behind_a_proxy().await;
    let url = servers.url_at(&[proxy.addr().port()], OPTIONS);
    let cut_off = client(&url).await;
    let guard = cut_off.lock("held").acquire().await.unwrap();
    for round in 0..30 {
        proxy.cut_after_next(["CREATE", "DELETE", "CHILDREN"][round % 3]);
        let one = cut_off.lock("k").wait(LONG).run(async {}).await;
        assert!(
            matches!(one, Ok(()) | Err(LockError::Lost { .. })),
            "round {round}: {one:?}"
        );
        // A try has one attempt, and its own child is in nobody's way.
        proxy.cut_after_next("CREATE");
        let tried = cut_off.lock("tried").try_acquire().await.unwrap();
        assert!(tried.is_some(), "round {round}");
        proxy.cut();
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
    eventually("nothing is left", async || {
        let mut left = 0;
        for key in ["k", "held", "tried"] {
            left += children(&servers, key).await;
        }
        left == 0
    })
    .await;
}

/// As behind a load balancer that lets nobody stay.
#[tokio::test]
async fn connections_that_end_at_once_again_and_again_are_made_at_intervals() {
    let (servers, proxy) = behind_a_proxy().await;
    let client = client(&servers.url_at(&[proxy.addr().port()], OPTIONS)).await;
    client.lock("k").run(async {}).await.unwrap();
    proxy.cut();
    client.lock("k").run(async {}).await.unwrap();
    let before = proxy.connections();
    let until = Instant::now() + Duration::from_secs(4);
    proxy.cut();
    while Instant::now() < until {
        // Each begins with one.
        proxy.cut_after_next("BEAT");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let made = proxy.connections() - before;
    assert!((3..12).contains(&made), "{made} in four seconds");
    client.lock("k").run(async {}).await.unwrap();
}

#[tokio::test]
async fn what_is_kept_after_a_release_ends_in_time_although_its_client_is_gone() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url(OPTIONS);
    let keep = Duration::from_secs(4);
    let gone = client(&url).await;
    gone.lock("k")
        .hold_at_least(keep)
        .run(async {})
        .await
        .unwrap();
    let released = Instant::now();
    gone.shutdown(LONG).await;
    drop(gone);
    let other = client(&url).await;
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    drop(other.lock("k").acquire().await.unwrap());
    let took = released.elapsed();
    // It counts from when the other has seen it.
    assert!(took > keep - keep / 10 && took < 3 * keep, "{took:?}");
}

/// As Curator makes nodes, or an operator: without data. It gets the base of the tokens.
#[tokio::test]
async fn a_namespace_whose_node_is_there_and_empty_has_tokens() {
    let servers = ZooKeeperEnsemble::one().await;
    let first = client(&servers.url("?namespace=shop")).await;
    let curator = first.with_layout(Layout::Curator);
    curator.lock("a").run(async {}).await.unwrap();
    let made = format!("{}/byhand", servers.chroot());
    servers.session().await.create(&made, b"").await;
    let second = client(&servers.url("?namespace=byhand")).await;
    for one in [&first, &second] {
        let held = one.lock("b").fenced().acquire().await.unwrap();
        let token = held.fencing_token().unwrap();
        held.release().await.unwrap();
        let held = one.lock("b").fenced().acquire().await.unwrap();
        assert!(held.fencing_token().unwrap() > token);
    }
}
