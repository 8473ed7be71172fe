//! Leases: how long a hold can be trusted, and what is left of a client that has gone.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError};
use lock_testkit::{EtcdCluster, Proxy, eventually};
use serde_json::json;

use crate::{client, requests, worker};

const LEASE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_hold_is_over_for_its_client_before_the_server_ends_its_lease() {
    let servers = EtcdCluster::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_unread(address).await;
    let cut_off = client(&servers.url_at(&[proxy.addr().port()], "")).await;
    let guard = cut_off.lock("k").lease(LEASE).renew(true).acquire();
    let guard = guard.await.unwrap();
    // The trust goes on as long as there are answers.
    let until = Instant::now() + 2 * LEASE;
    while Instant::now() < until {
        assert!(guard.is_held());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    proxy.freeze();
    let frozen = Instant::now();
    guard.lost().await;
    let after = frozen.elapsed();
    assert_eq!(requests(&servers, "k").await.len(), 1, "after {after:?}");
    assert!(!guard.is_held() && after < LEASE, "{after:?}");
    let other = client(&servers.url("")).await;
    drop(other.lock("k").acquire().await.unwrap());
    proxy.thaw();
    drop(guard);
    eventually("nothing is left", async || servers.locks().await.is_empty()).await;
}

#[tokio::test]
async fn the_lock_of_a_killed_process_stays_for_its_lease_and_not_much_longer() {
    let servers = EtcdCluster::one().await;
    let url = servers.url("");
    let mut killed = worker(&url).await;
    killed.send("hold 1 k lease=4000");
    killed.wait_for("held").await;
    let began = Instant::now();
    killed.kill();
    let other = client(&url).await;
    drop(other.lock("k").acquire().await.unwrap());
    let took = began.elapsed();
    // It was held for some milliseconds before, and leases are whole seconds.
    assert!(took > Duration::from_millis(3500), "{took:?}");
    assert!(took < Duration::from_secs(12), "{took:?}");
}

#[tokio::test]
async fn the_place_of_a_killed_process_keeps_others_waiting_for_seconds_only() {
    let servers = EtcdCluster::one().await;
    let url = servers.url("?session=2s");
    let (holder, last) = (client(&url).await, client(&url).await);
    let guard = holder.lock("k").acquire().await.unwrap();
    let mut killed = worker(&url).await;
    killed.send("hold 1 k renew");
    eventually("it waits", async || {
        requests(&servers, "k").await.len() == 2
    })
    .await;
    killed.kill();
    let waiter = tokio::spawn(last.lock("k").acquire());
    eventually("another waits", async || {
        requests(&servers, "k").await.len() >= 2
    })
    .await;
    guard.release().await.unwrap();
    let began = Instant::now();
    drop(waiter.await.unwrap().unwrap());
    assert!(began.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn a_lease_that_is_revoked_under_its_holder_is_a_loss_and_no_second_release() {
    let servers = EtcdCluster::one().await;
    let (a, b) = (
        client(&servers.url("")).await,
        client(&servers.url("")).await,
    );
    let guard = a
        .lock("k")
        .lease(LEASE)
        .renew(true)
        .acquire()
        .await
        .unwrap();
    let [key] = &requests(&servers, "k").await[..] else {
        panic!("one request")
    };
    let gateway = servers.gateway().await;
    let lease = gateway.lease_of(key).await.unwrap().unwrap();
    gateway
        .ask("lease/revoke", &json!({ "ID": lease }))
        .await
        .unwrap();
    let next = b.lock("k").acquire().await.unwrap();
    tokio::time::timeout(LEASE, guard.lost()).await.unwrap();
    let released = guard.release().await;
    assert!(
        matches!(released, Err(LockError::Lost { .. })),
        "{released:?}"
    );
    assert!(next.is_held());
    next.release().await.unwrap();
    // The client takes another lease.
    let again = a
        .lock("k")
        .lease(LEASE)
        .renew(true)
        .acquire()
        .await
        .unwrap();
    again.release().await.unwrap();
}

#[tokio::test]
async fn what_is_kept_after_a_release_outlives_its_client_and_ends() {
    let servers = EtcdCluster::one().await;
    let url = servers.url("");
    let (job, other) = (client(&url).await, client(&url).await);
    let kept = job.lock("k").hold_at_least(Duration::from_secs(4));
    kept.run(async {}).await.unwrap();
    job.shutdown(Duration::from_secs(5)).await;
    drop(job);
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    drop(other.lock("k").acquire().await.unwrap());
}

/// Whoever asks it does not know yet that it has died.
#[tokio::test]
async fn a_letter_to_a_client_that_has_died_is_taken_back() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    let all = format!("{}/%mail/", servers.prefix());
    let letters = async || {
        let all = gateway.below(&all).await.unwrap();
        all.iter()
            .filter(|(key, _)| !key.ends_with("/here"))
            .count()
    };
    let mut killed = worker(&servers.url("")).await;
    let asks = client(&servers.url("")).await;
    killed.send("hold 1 k lease=60000");
    killed.wait_for("held").await;
    killed.kill();
    let busy = asks.lock("k").wait(Duration::from_millis(100)).acquire();
    assert!(matches!(busy.await, Err(LockError::Busy { .. })));
    assert_eq!(letters().await, 1);
    eventually("it is gone", async || letters().await == 0).await;
}

/// It found room, and another took that before its key was there.
#[tokio::test]
async fn who_finds_room_that_another_takes_waits_on_the_lease_of_its_session() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_unread(address).await;
    let far = LockClient::builder().url(servers.url_at(&[proxy.addr().port()], ""));
    let far = far.command_timeout(Duration::from_secs(20));
    let far = far.connect().await.unwrap();
    let near = client(&servers.url("")).await;
    let permit = |of: &LockClient| {
        let permit = of.semaphore("s", 2).permit().lease(Duration::from_secs(60));
        permit.wait(Duration::from_secs(30)).acquire()
    };
    let held = permit(&near).await.unwrap();
    let leases = gateway.leases().await.unwrap();
    proxy.delay_replies(Duration::from_secs(1));
    let waits = tokio::spawn(permit(&far));
    eventually("it has a lease", async || {
        gateway.leases().await.unwrap() > leases
    })
    .await;
    // One second later it looks, and one after that it makes its key.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let last = permit(&near).await.unwrap();
    proxy.delay_replies(Duration::ZERO);
    let seconds = async || {
        let mut all = Vec::new();
        for (key, _) in servers.locks().await {
            if let Some(lease) = gateway.lease_of(&key).await.unwrap() {
                let id = json!({ "ID": lease });
                let found = gateway.ask("lease/timetolive", &id).await.unwrap();
                let granted: u64 = found["grantedTTL"].as_str().unwrap().parse().unwrap();
                all.push(granted);
            }
        }
        all.sort_unstable();
        all
    };
    eventually("its place is on the lease of its session", async || {
        matches!(*seconds().await, [session, one, other] if session < 60 && one.min(other) > 60)
    })
    .await;
    last.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    held.release().await.unwrap();
}

/// The servers grant each of its leases, and the answer is lost.
#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_found_again_and_none_is_left_behind() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    let leases = async || gateway.leases().await.unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_unread(address).await;
    let client = client(&servers.url_at(&[proxy.addr().port()], "?session=60s")).await;
    assert_eq!(leases().await, 1);
    for (number, lease) in [(2, 100), (3, 200)] {
        proxy.drop_replies(true);
        let request = client.lock("k").lease(Duration::from_secs(lease));
        let guard = tokio::spawn(request.acquire());
        eventually("the lease is granted", async || leases().await == number).await;
        proxy.drop_replies(false);
        proxy.cut();
        guard.await.unwrap().unwrap().release().await.unwrap();
        assert_eq!(leases().await, number);
    }
    // What stays taken has a lease of its own.
    let request = client.lock("k").hold_at_least(Duration::from_secs(300));
    let guard = request.acquire().await.unwrap();
    let before = leases().await;
    proxy.drop_replies(true);
    let released = tokio::spawn(guard.release());
    eventually("the lease is granted", async || leases().await > before).await;
    proxy.drop_replies(false);
    proxy.cut();
    released.await.unwrap().unwrap();
    assert_eq!(leases().await, before + 1);
    assert!(client.lock("k").try_acquire().await.unwrap().is_none());
}
