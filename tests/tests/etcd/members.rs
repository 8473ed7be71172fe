//! A cluster of three: what the loss of members does to holds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::observe::{Event, Observer, What};
use lock_runtime::{LockClient, LockError};
use lock_testkit::{
    EtcdCluster, Proxy, SmallDisk, eventually, lost_before_another_has_it, until_served,
};

use crate::cost::revision;
use crate::{LONG, client};

#[tokio::test]
async fn whichever_member_is_killed_holds_go_on_and_tokens_rise() {
    let servers = EtcdCluster::three().await;
    let url = servers.url("");
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
        // An election takes longer on a busy machine.
        eventually("there is a leader", async || {
            a.lock("other").run(async {}).await.is_ok()
        })
        .await;
        guard.release().await.unwrap();
        let next = tokio::time::timeout(LONG, waiter).await.unwrap();
        let next = next.unwrap().unwrap();
        last = next.fencing_token();
        assert!(last > Some(token), "{last:?} after {token}");
        next.release().await.unwrap();
        servers.start_member(number);
        servers.until_serving().await;
    }
}

#[tokio::test]
async fn a_leader_that_stands_still_is_replaced_and_comes_back_without_a_second_holder() {
    let servers = EtcdCluster::three().await;
    let url = servers.url("");
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
    let url = servers.url_at(&others, "");
    let other = LockClient::builder()
        .url(url)
        .command_timeout(Duration::from_secs(5));
    let other = other.connect_lazy().unwrap();
    eventually("the others have a leader", async || {
        other.lock("other").run(async {}).await.is_ok()
    })
    .await;
    assert!(guard.is_held(), "the lease is longer than an election");
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
    let servers = EtcdCluster::three().await;
    let url = servers.url("?session=4s");
    let a = client(&url).await;
    let lease = Duration::from_secs(5);
    let guard = a
        .lock("k")
        .lease(lease)
        .renew(true)
        .acquire()
        .await
        .unwrap();
    let leader = servers.leader().await;
    let [first, second] = [(leader + 1) % 3, (leader + 2) % 3];
    servers.kill_member(first);
    servers.kill_member(second);
    let lost = tokio::time::timeout(Duration::from_secs(12), guard.lost()).await;
    assert!(lost.is_ok(), "nobody can say that the lease goes on");
    let refused = a.lock("other").wait(Duration::from_secs(3)).acquire().await;
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    servers.start_member(first);
    servers.start_member(second);
    drop(guard);
    let again = a.lock("k").acquire().await.unwrap();
    assert!(again.is_held());
}

#[tokio::test]
async fn holds_outlive_a_restart_of_all_members() {
    let servers = EtcdCluster::three().await;
    let url = servers.url("");
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
        servers.start_member(number);
    }
    servers.until_serving().await;
    until_served(&a).await;
    assert!(guard.is_held() && !waiter.is_finished());
    guard.release().await.unwrap();
    let next = tokio::time::timeout(LONG, waiter).await.unwrap();
    assert!(next.unwrap().unwrap().is_held());
}

/// A member that answers nobody, and hears from no member: its own client goes to another.
#[tokio::test]
async fn a_client_of_a_member_that_is_cut_off_goes_to_another_and_keeps_its_hold() {
    let servers = EtcdCluster::three().await;
    let leader = servers.leader().await;
    let ports = servers.ports();
    let follower = (leader + 1) % 3;
    let address = SocketAddr::from(([127, 0, 0, 1], ports[follower]));
    let proxy = Proxy::start_unread(address).await;
    // The follower is the only one that the client knows at first.
    let url = servers.url_at(&[proxy.addr().port(), ports[leader]], "");
    let (a, b) = (client(&url).await, client(&servers.url("")).await);
    let guard = a.lock("k").acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("k").acquire());
    eventually("it waits", async || {
        b.inspect("k").await.is_ok_and(|found| found.waiting == 1)
    })
    .await;
    proxy.freeze();
    servers.pause_member(follower);
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        assert!(guard.is_held() && !waiter.is_finished());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    guard.release().await.unwrap();
    let next = tokio::time::timeout(LONG, waiter).await.unwrap();
    next.unwrap().unwrap().release().await.unwrap();
    servers.resume_member(follower);
    proxy.thaw();
    a.lock("k").run(async {}).await.unwrap();
}

/// What a client has sent and got no answer to is carried out late, or never: nothing is left.
#[tokio::test]
async fn a_connection_that_is_cut_again_and_again_costs_no_hold_and_leaves_nothing() {
    let servers = EtcdCluster::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_unread(address).await;
    let cut_off = client(&servers.url_at(&[proxy.addr().port()], "")).await;
    let held = cut_off.lock("held").acquire().await.unwrap();
    for round in 0..20 {
        let work = async {
            for _ in 0..5 {
                cut_off.lock("k").run(async {}).await.unwrap();
            }
        };
        let cuts = async {
            tokio::time::sleep(Duration::from_millis(3 * round)).await;
            proxy.cut();
        };
        tokio::join!(work, cuts);
        assert!(held.is_held(), "round {round}");
    }
    held.release().await.unwrap();
    eventually("nothing is left", async || servers.locks().await.is_empty()).await;
}

/// A client that knows the member only which was cut off from the others, and follows them or leads
/// them at first.
#[tokio::test]
async fn a_hold_at_a_member_that_is_cut_off_from_the_others_is_lost_before_another_gets_it() {
    let (servers, network) = EtcdCluster::three_apart().await;
    let ports = servers.ports();
    for leads in [false, true] {
        let alone = (servers.leader().await + usize::from(!leads)) % 3;
        let mut others = ports.clone();
        let port = others.remove(alone);
        let cut_off = client(&servers.url_at(&[port], "?session=4s")).await;
        let other = client(&servers.url_at(&others, "?session=4s")).await;
        let request = cut_off.lock("k").lease(Duration::from_secs(2)).renew(true);
        let guard = request.acquire().await.unwrap();
        let cut = || network.isolate(alone);
        let (guard, next) = lost_before_another_has_it(guard, cut, &other).await;
        drop(guard);
        // The member that comes back brings about an election, in which nobody is answered.
        next.release().await.unwrap();
        network.rejoin(alone);
        // It hears of a leader when its peers have dialled again. Until then it has no majority.
        servers.until_serving().await;
        eventually("its client goes on", async || {
            cut_off.lock("k").run(async {}).await.is_ok()
        })
        .await;
    }
}

/// The cluster is another one then, or the same one and behind.
#[tokio::test]
async fn a_restored_cluster_gives_higher_tokens_than_before() {
    let servers = EtcdCluster::one().await;
    let url = servers.url("");
    let token = async |client: &LockClient| {
        let guard = client.lock("k").fenced().acquire().await.unwrap();
        let token = guard.fencing_token().unwrap();
        guard.release().await.unwrap();
        token
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("snapshot");
    let a = client(&url).await;
    let mut last = token(&a).await;
    servers.save_snapshot(&file);
    for cluster in [None, Some("restored")] {
        for _ in 0..100 {
            let next = token(&a).await;
            assert!(next > last);
            last = next;
        }
        servers.restore(&file, cluster).await;
        // If it is another cluster, one that knows nothing of the first comes first.
        let new = match cluster {
            None => None,
            Some(_) => Some(client(&url).await),
        };
        for client in new.iter().chain([&a]) {
            let next = token(client).await;
            assert!(next > last, "{cluster:?}: {next} after {last}");
            last = next;
        }
    }
}

/// A member whose disk is full ends itself, and the others go on. The mount needs root.
#[tokio::test]
async fn a_full_disk_of_the_leader_costs_no_hold() {
    let Some(disk) = SmallDisk::mounted(192 << 20) else {
        return;
    };
    let servers = EtcdCluster::three().await;
    let url = servers.url("");
    let (a, b) = (client(&url).await, client(&url).await);
    let guard = a.lock("k").fenced().acquire().await.unwrap();
    let leader = servers.leader().await;
    servers.kill_member(leader);
    disk.take_in(&servers.data(leader));
    servers.restart_member(leader).await;
    let other = servers.leader().await;
    // Whoever leads, the one with the small disk has written all before it ends.
    disk.fill();
    let gateway = lock_testkit::EtcdGateway::at(servers.ports()[other]);
    let filling = "x".repeat(1 << 20);
    eventually("the member ends", async || {
        // Its page cache has some space.
        let _ = gateway.put("filling", &filling).await;
        servers.has_ended(leader)
    })
    .await;
    assert!(guard.is_held());
    eventually("there is a majority", async || {
        b.lock("other").try_acquire().await.is_ok()
    })
    .await;
    assert!(b.lock("k").try_acquire().await.unwrap().is_none());
    let token = guard.fencing_token().unwrap();
    guard.release().await.unwrap();
    let next = b.lock("k").fenced().acquire().await.unwrap();
    assert!(next.fencing_token().unwrap() > token);
    disk.free();
    servers.restart_member(leader).await;
    assert!(next.is_held());
    drop(servers);
}

/// Cuts the connections of a proxy as soon as its client says that it is connected, if it is to.
#[derive(Clone)]
struct CutsAtOnce(Arc<Proxy>, Arc<AtomicBool>);

impl Observer for CutsAtOnce {
    fn observe(&self, event: &Event<'_>) {
        if matches!(event.what, What::Connected { .. }) && self.1.load(Ordering::Relaxed) {
            self.0.cut();
        }
    }
}

/// As behind one that ends streams and passes the rest: each connection writes.
#[tokio::test]
async fn connections_that_end_as_soon_as_they_are_up_become_rare() {
    let servers = EtcdCluster::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Arc::new(Proxy::start_unread(address).await);
    let cuts = CutsAtOnce(Arc::clone(&proxy), Arc::default());
    let builder = LockClient::builder().url(servers.url_at(&[proxy.addr().port()], ""));
    let builder = builder.connect_timeout(Duration::from_secs(10));
    let builder = builder.command_timeout(Duration::from_secs(5));
    let client = builder.observer(cuts.clone()).connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    let (connections, revisions) = (proxy.connections(), revision(&servers).await);
    cuts.1.store(true, Ordering::Relaxed);
    proxy.cut();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let more = proxy.connections() - connections;
    assert!((4..40).contains(&more), "{more} connections");
    let written = revision(&servers).await - revisions;
    assert!(written < 40, "{written} revisions");
    cuts.1.store(false, Ordering::Relaxed);
    client.lock("k").run(async {}).await.unwrap();
}
