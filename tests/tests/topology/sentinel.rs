//! A master that dies, stands still, or hands over, under three sentinels.

use std::time::Duration;

use lock_testkit::{Proxy, RedisServer, SentinelGroup, eventually, eventually_within};

use crate::load::Load;
use crate::{SLACK, client};

/// The owner token that holds the lock in this server, whatever the others say.
async fn holder(server: &RedisServer, key: &str) -> Option<String> {
    server.query(&["GET", &format!("lock:{key}")]).await
}

/// Waits until every living replica has all data of `master`.
async fn until_replicated(group: &SentinelGroup, master: &RedisServer, key: &str) {
    let value = holder(master, key).await;
    for server in &group.servers {
        eventually("a replica has the lock", async || {
            holder(server, key).await == value
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_and_waiters_carry_on_when_the_master_is_killed_under_load() {
    let group = SentinelGroup::start().await;
    let clients = [client(&group.url()).await, client(&group.url()).await];
    let load = Load::start(&clients, (0..4).map(|key| format!("load:{key}")), 4);
    load.more_turns(50).await;

    let guard = clients[0]
        .lock("held")
        // Sentinels that are short of a processor may need a second election.
        .lease(Duration::from_secs(60))
        .renew(true)
        .acquire()
        .await
        .unwrap();
    let waiting = clients[1]
        .lock("held")
        .wait(Duration::from_secs(120))
        .acquire();
    let waiting = tokio::spawn(waiting);
    let old = group.master().await;
    until_replicated(&group, old, "held").await;

    load.forgive();
    old.kill();
    group.until_failed_over(old).await;
    load.more_turns(50).await;
    load.strict_again().await;
    load.more_turns(50).await;
    load.finish().await;

    assert!(guard.is_held());
    let new = group.master().await;
    assert!(holder(new, "held").await.is_some());
    assert!(!waiting.is_finished());
    guard.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.is_held());
    assert!(holder(new, "held").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_master_that_wakes_up_is_not_used_any_more() {
    let group = SentinelGroup::start().await;
    let (idle, other) = (client(&group.url()).await, client(&group.url()).await);
    let guard = idle.lock("k").acquire().await.unwrap();
    guard.release().await.unwrap();
    let old = group.master().await;
    old.pause();
    group.until_failed_over(old).await;
    // It still believes to be the master, and every connection to it still works.
    old.resume();
    eventually("the old master answers", async || {
        old.responds_within(Duration::from_secs(1)).await
    })
    .await;
    let new = group.master().await;
    for idle in [&idle, &other] {
        eventually_within(
            Duration::from_secs(4) + SLACK,
            "the idle client uses the new master",
            async || {
                let Ok(Some(guard)) = idle.lock("idle").try_acquire().await else {
                    return false;
                };
                let there = holder(new, "idle").await.is_some();
                guard.release().await.unwrap_or_default();
                there
            },
        )
        .await;
    }
    // From now on, for good.
    let held = other.lock("k").acquire().await.unwrap();
    for _ in 0..200 {
        let refused = idle.lock("k").try_acquire().await.unwrap();
        assert!(refused.is_none(), "granted by the old master");
    }
    held.release().await.unwrap();
    assert!(holder(old, "k").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stands_still_is_replaced_for_holders_and_waiters() {
    let group = SentinelGroup::start().await;
    let (one, two) = (client(&group.url()).await, client(&group.url()).await);
    let lock = |client: &lock_runtime::LockClient| {
        let lock = client.lock("held").wait(Duration::from_secs(60));
        // Sentinels that are short of a processor may need a second election.
        lock.lease(Duration::from_secs(60)).renew(true).fenced()
    };
    let guard = lock(&one).acquire().await.unwrap();
    let token = guard.fencing_token().unwrap();
    let waiting = tokio::spawn(lock(&two).acquire());
    let old = group.master().await;
    until_replicated(&group, old, "held").await;
    old.pause();
    group.until_failed_over(old).await;
    // Through the new master: the old one still stands still.
    eventually("the release is answered", async || {
        one.health().await.is_ok()
    })
    .await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.fencing_token().unwrap() > token);
    old.resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover_costs_no_lock() {
    let group = SentinelGroup::start().await;
    let clients = [client(&group.url()).await, client(&group.url()).await];
    let guard = clients[0].lock("held").acquire().await.unwrap();
    let old = group.master().await;
    until_replicated(&group, old, "held").await;
    let load = Load::start(&clients, ["load".to_owned()], 4);
    load.more_turns(20).await;
    load.forgive();
    group.sentinels[0]
        .command(&["SENTINEL", "FAILOVER", "mymaster"])
        .await;
    group.until_failed_over(old).await;
    load.strict_again().await;
    load.more_turns(20).await;
    load.finish().await;
    assert!(guard.is_held());
    assert!(holder(group.master().await, "held").await.is_some());
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_are_gone_or_stand_still_do_not_matter_while_one_answers() {
    let group = SentinelGroup::start().await;
    let early = client(&group.url()).await;
    group.sentinels[0].kill();
    group.sentinels[1].pause();
    let late = client(&group.url()).await;
    let guard = late.lock("k").acquire().await.unwrap();
    assert!(early.lock("k").try_acquire().await.unwrap().is_none());
    group.sentinels[2].kill();
    // The master is known. Only its successor could not be found.
    guard.release().await.unwrap();
    assert!(early.lock("k").try_acquire().await.unwrap().is_some());
}

/// As behind a firewall that forgot it. Later, its answer may be the one that counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_connection_to_a_sentinel_is_given_up_though_the_others_answer() {
    let group = SentinelGroup::start().await;
    let proxy = Proxy::start(group.sentinels[0].addr()).await;
    let (direct, proxied) = (group.sentinels[0].addr(), proxy.addr());
    let url = group
        .url()
        .replace(&direct.to_string(), &proxied.to_string());
    let _client = client(&url).await;
    let asked = || proxy.requests_named("SENTINEL");
    eventually("it is asked again and again", async || asked() >= 8).await;
    let made = proxy.connections();
    proxy.drop_replies(true);
    eventually("it is asked over a new one", async || {
        proxy.connections() > made
    })
    .await;
}

/// The nemesis goes by it: what a replaced master grants is no fault of the lock.
#[tokio::test]
async fn a_group_is_settled_only_when_no_replaced_master_grants_any_more() {
    let group = SentinelGroup::start().await;
    group.until_settled().await;
    let before = group.settled_master().await;
    let old = group.master().await;
    group.sentinels[2]
        .command(&["SENTINEL", "FAILOVER", "mymaster"])
        .await;
    group.until_failed_over(old).await;
    let settled = group.settled_master().await;
    let role = old.query::<Vec<redis::Value>>(&["ROLE"]).await;
    // Still a master, so it was one during the look.
    if role[0] == redis::Value::BulkString(b"master".to_vec()) {
        assert_eq!(settled, None);
    }
    group.until_settled().await;
    let after = group.settled_master().await;
    assert!(after.is_some() && after != before, "{before:?} {after:?}");
    let role = old.query::<Vec<redis::Value>>(&["ROLE"]).await;
    assert_eq!(role[0], redis::Value::BulkString(b"slave".to_vec()));
}
