//! An ensemble of three: what the loss of members does to holds.

use std::path::Path;
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError};
use lock_testkit::{
    SmallDisk, ZooKeeperEnsemble, ZooKeeperSession, eventually, lost_before_another_has_it,
    until_served,
};

use crate::{LONG, client};

#[tokio::test]
async fn whichever_member_is_killed_holds_go_on_and_tokens_rise() {
    let servers = ZooKeeperEnsemble::three().await;
    let url = servers.url("?tick=500ms&session=30s");
    let (a, b) = (client(&url).await, client(&url).await);
    let mut last = None;
    for number in 0..3 {
        // The leader among them.
        let guard = a.lock("k").fenced().acquire().await.unwrap();
        let token = guard.fencing_token().unwrap();
        assert!(Some(token) > last, "{token} after {last:?}");
        let waiter = tokio::spawn(b.lock("k").fenced().acquire());
        eventually("it waits", async || {
            a.inspect("k").await.is_ok_and(|found| found.waiting == 1)
        })
        .await;
        servers.kill_member(number);
        // Longer than an election takes.
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            assert!(guard.is_held(), "member {number}");
            assert!(!waiter.is_finished());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        eventually("there is a majority", async || {
            b.lock("other").try_acquire().await.is_ok()
        })
        .await;
        assert!(guard.is_held(), "member {number}");
        guard.release().await.unwrap();
        let next = tokio::time::timeout(LONG, waiter).await.unwrap();
        let next = next.unwrap().unwrap();
        last = next.fencing_token();
        assert!(last > Some(token), "{last:?} after {token}");
        next.release().await.unwrap();
        servers.restart_member(number).await;
        servers.until_serving().await;
    }
}

#[tokio::test]
async fn a_leader_that_stands_still_is_replaced_and_comes_back_without_a_second_holder() {
    let servers = ZooKeeperEnsemble::three_quick().await;
    let url = servers.url("?tick=500ms&session=30s");
    let (a, b) = (client(&url).await, client(&url).await);
    let guard = a.lock("k").acquire().await.unwrap();
    let leader = servers.leader().await;
    servers.pause_member(leader);
    let others: Vec<u16> = {
        let ports = servers.ports().into_iter().enumerate();
        let ports = ports.filter(|(number, _)| *number != leader);
        ports.map(|(_, port)| port).collect()
    };
    // Two are a majority.
    let url = servers.url_at(&others, "?tick=500ms");
    let other = LockClient::builder()
        .url(url)
        .command_timeout(Duration::from_secs(5));
    let other = other.connect_lazy().unwrap();
    eventually("the others have a leader", async || {
        other.lock("other").run(async {}).await.is_ok()
    })
    .await;
    assert!(guard.is_held(), "the session is longer than an election");
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    servers.resume_member(leader);
    servers.until_serving().await;
    until_served(&a).await;
    until_served(&b).await;
    assert!(guard.is_held());
    assert!(b.lock("k").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    drop(b.lock("k").acquire().await.unwrap());
}

#[tokio::test]
async fn without_a_majority_holds_end_and_nothing_is_granted_until_it_is_back() {
    let servers = ZooKeeperEnsemble::three().await;
    let url = servers.url("?tick=500ms&session=4s");
    let a = client(&url).await;
    let guard = a.lock("k").acquire().await.unwrap();
    let leader = servers.leader().await;
    let [first, second] = [(leader + 1) % 3, (leader + 2) % 3];
    servers.kill_member(first);
    servers.kill_member(second);
    let lost = tokio::time::timeout(Duration::from_secs(6), guard.lost()).await;
    assert!(
        lost.is_ok(),
        "the trust in a session ends with the session at the latest"
    );
    let refused = a.lock("other").wait(Duration::from_secs(3)).acquire().await;
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    servers.spawn_member(first);
    servers.spawn_member(second);
    servers.until_serving().await;
    drop(guard);
    let again = a.lock("k").acquire().await.unwrap();
    assert!(again.is_held());
}

#[tokio::test]
async fn holds_outlive_a_restart_of_all_members() {
    let servers = ZooKeeperEnsemble::three().await;
    let url = servers.url("?tick=500ms&session=60s");
    let (a, b) = (client(&url).await, client(&url).await);
    let guard = a.lock("k").acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("k").acquire());
    eventually("it waits", async || {
        a.inspect("k").await.is_ok_and(|found| found.waiting == 1)
    })
    .await;
    for number in 0..3 {
        servers.kill_member(number);
    }
    for number in 0..3 {
        servers.spawn_member(number);
    }
    servers.until_serving().await;
    until_served(&a).await;
    assert!(guard.is_held() && !waiter.is_finished());
    guard.release().await.unwrap();
    let next = tokio::time::timeout(LONG, waiter).await.unwrap();
    assert!(next.unwrap().unwrap().is_held());
}

/// Copies a folder with the folders in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[tokio::test]
async fn tokens_rise_over_a_restore_of_an_older_state_for_whoever_lived_through_it() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("?tick=500ms&session=2s");
    let (a, b) = (client(&url).await, client(&url).await);
    let token = async |client: &LockClient| {
        let guard = client.lock("k").fenced().acquire().await.unwrap();
        let token = guard.fencing_token().unwrap();
        guard.release().await.unwrap();
        token
    };
    // The other client knows the base, and gets what follows from it.
    let (mut last, _) = (token(&a).await, token(&b).await);
    servers.kill_member(0);
    let older = servers.data(0).with_file_name("older");
    copy(&servers.data(0), &older);
    servers.restart_member(0).await;
    for _ in 0..100 {
        let next = token(&a).await;
        assert!(next > last);
        last = next;
    }
    servers.kill_member(0);
    std::fs::remove_dir_all(servers.data(0)).unwrap();
    std::fs::rename(&older, servers.data(0)).unwrap();
    servers.restart_member(0).await;
    for client in [&a, &b, &a] {
        let next = token(client).await;
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}

/// A leader that was replaced and does not know it answers reads and a `sync`, and lets its clients
/// take their sessions over again. It can't make anybody write.
#[tokio::test]
async fn a_hold_at_a_leader_that_was_replaced_is_lost_before_another_gets_it() {
    let (servers, network) = ZooKeeperEnsemble::three_apart(2).await;
    // To members that come later, the leader connects by itself. Those connections are cut as well.
    for follower in 0..2 {
        servers.kill_member(follower);
        servers.restart_member(follower).await;
    }
    servers.until_serving().await;
    let ports = servers.ports();
    let options = "?tick=500ms&session=4s";
    let cut_off = client(&servers.url_at(&ports[2..], options)).await;
    let other = client(&servers.url_at(&ports[..2], options)).await;
    let guard = cut_off.lock("k").acquire().await.unwrap();
    let cut = || network.isolate(2);
    let (guard, next) = lost_before_another_has_it(guard, cut, &other).await;
    assert!(
        servers.leads(2).await,
        "it does not know that it was replaced"
    );
    drop(guard);
    // Before the member that comes back may bring about an election.
    next.release().await.unwrap();
    network.rejoin(2);
    servers.until_serving().await;
    // It follows, and its client goes on.
    eventually("its client goes on", async || {
        cut_off.lock("k").run(async {}).await.is_ok()
    })
    .await;
}

/// A follower that is cut off answers reads as before, and knows nothing of what the others do.
#[tokio::test]
async fn a_hold_at_a_follower_that_is_cut_off_is_lost_before_another_gets_it() {
    let (servers, network) = ZooKeeperEnsemble::three_apart(0).await;
    let ports = servers.ports();
    let options = "?tick=500ms&session=4s";
    let cut_off = client(&servers.url_at(&ports[..1], options)).await;
    let other = client(&servers.url_at(&ports[1..], options)).await;
    let guard = cut_off.lock("k").acquire().await.unwrap();
    let key = format!("{}/lock/k", servers.chroot());
    let mut reader = ZooKeeperSession::open(ports[0]).await.unwrap();
    let held = reader.children(&key).await;
    assert_eq!(held.len(), 1);
    let cut = || network.isolate(0);
    let (guard, next) = lost_before_another_has_it(guard, cut, &other).await;
    assert_eq!(reader.children(&key).await, held, "it answers what was");
    let mut members = vec![reader];
    for port in &ports[1..] {
        members.push(ZooKeeperSession::open(*port).await.unwrap());
    }
    let differences = servers.differences(&mut members).await;
    assert!(!differences.is_empty(), "as the runs with faults look for");
    assert!(next.is_held() && !guard.is_held());
    assert!(cut_off.lock("k").try_acquire().await.is_err());
    drop(guard);
    next.release().await.unwrap();
    network.rejoin(0);
    servers.until_serving().await;
    // It follows again, and its client goes on.
    eventually("its client goes on", async || {
        cut_off.lock("k").run(async {}).await.is_ok()
    })
    .await;
    eventually("all know the same", async || {
        let mut members = servers.session_at_each().await;
        servers.differences(&mut members).await.is_empty()
    })
    .await;
}

/// A leader whose disk is full steps down, and the others go on. The mount needs root.
#[tokio::test]
async fn a_full_disk_of_the_leader_costs_no_hold() {
    let Some(disk) = SmallDisk::mounted(8 << 20) else {
        return;
    };
    let servers = ZooKeeperEnsemble::three().await;
    let last = 2;
    servers.kill_member(last);
    disk.take_in(&servers.data(last));
    servers.restart_member(last).await;
    servers.let_the_last_lead().await;
    let url = servers.url("?tick=500ms&session=30s");
    let (a, b) = (client(&url).await, client(&url).await);
    let guard = a.lock("k").fenced().acquire().await.unwrap();
    disk.fill();
    eventually("another leads", async || {
        // A page of its log has some space.
        let _ = b.lock("other").run(async {}).await;
        servers.leads(0).await || servers.leads(1).await
    })
    .await;
    assert!(guard.is_held());
    eventually("a majority answers both", async || {
        let tried = b.lock("k").try_acquire().await;
        assert!(!matches!(tried, Ok(Some(_))), "two hold it");
        tried.is_ok() && a.inspect("k").await.is_ok()
    })
    .await;
    assert!(guard.is_held());
    let token = guard.fencing_token().unwrap();
    guard.release().await.unwrap();
    let next = b.lock("k").fenced().acquire().await.unwrap();
    assert!(next.fencing_token().unwrap() > token);
    disk.free();
    servers.kill_member(last);
    servers.restart_member(last).await;
    assert!(next.is_held());
    drop(servers);
}
