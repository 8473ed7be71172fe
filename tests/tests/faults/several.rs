//! Several locks at once, while processes die and replies are lost.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{ChildProcess, Proxy, RedisServer, eventually};

use crate::network::{behind_proxy, patiently_behind_proxy, started};
use crate::{COMMAND_TIMEOUT, SLACK, client, unavailable, until_waiting, worker};

const NOBODYS: Vec<String> = Vec::new();

#[tokio::test]
async fn thirty_two_tasks_of_two_processes_move_money_between_eight_accounts_and_none_is_lost() {
    const ACCOUNTS: usize = 8;
    let server = RedisServer::start().await;
    let balances: Vec<String> = (0..ACCOUNTS).map(|one| format!("balance:{one}")).collect();
    for balance in &balances {
        server.command(&["SET", balance, "1000"]).await;
    }
    let mut workers: [ChildProcess; 2] = [worker(&server.url()).await, worker(&server.url()).await];
    for worker in &mut workers {
        worker.send(&format!("transfer {} {ACCOUNTS} 16 10000", server.url()));
    }
    let (mut tasks, mut all, mut fewest, mut longest) = (0, 0, u64::MAX, 0);
    for worker in &mut workers {
        worker.wait_for("transferred").await;
        for event in worker.take_events() {
            let numbers = event.text.strip_prefix("moved ").unwrap().split(' ');
            let numbers: Vec<u64> = numbers.map(|one| one.parse().unwrap()).collect();
            tasks += 1;
            all += numbers[1];
            fewest = fewest.min(numbers[1]);
            longest = longest.max(numbers[2]);
        }
    }
    let longest = Duration::from_nanos(longest);
    println!("{all} transfers, of one task at least {fewest}, longest wait {longest:?}");
    let words: Vec<&str> = std::iter::once("MGET")
        .chain(balances.iter().map(String::as_str))
        .collect();
    let left: Vec<i64> = server.query(&words).await;
    assert_eq!(left.iter().sum::<i64>(), 8000, "{left:?}");
    assert_eq!(tasks, 32);
    assert!(fewest * 4 > all / tasks, "a task is stuck");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    assert_eq!(server.keys("lock:account*").await, NOBODYS);
}

#[tokio::test]
async fn a_holder_killed_frees_all_and_costs_no_more_than_its_lease() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let mut holder = worker(&server.url()).await;
    holder.send("hold a x,y,z lease=2000 renew");
    holder.wait_for("held a").await;
    let waiting = tokio::spawn(observer.multi_lock(["z", "y", "x"]).acquire());
    until_waiting(&observer, "x", 1).await;
    holder.kill();
    let killed = Instant::now();
    let next = waiting.await.unwrap().unwrap();
    assert!(
        killed.elapsed() <= Duration::from_secs(3) + SLACK,
        "{:?}",
        killed.elapsed()
    );
    assert!(next.is_held());
}

#[tokio::test]
async fn a_killed_waiter_frees_the_locks_that_it_had() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let held = observer.lock("y").acquire().await.unwrap();
    let mut waiter = worker(&server.url()).await;
    waiter.send("hold a x,y lease=2000");
    until_waiting(&observer, "y", 1).await;
    waiter.kill();
    let killed = Instant::now();
    let got = observer.lock("x").acquire().await.unwrap();
    assert!(
        killed.elapsed() <= Duration::from_secs(3) + SLACK,
        "{:?}",
        killed.elapsed()
    );
    held.release().await.unwrap();
    got.release().await.unwrap();
    let both = observer.multi_lock(["x", "y"]).acquire().await.unwrap();
    assert!(both.is_held());
}

#[tokio::test]
async fn an_acquire_whose_reply_is_dropped_leaves_no_lock_behind() {
    for fenced in [false, true] {
        let (server, proxy, client) = behind_proxy().await;
        let mut log = server.requests().await;
        let request = client.multi_lock(["y", "x"]);
        let request = if fenced { request.fenced() } else { request };
        let warm = request.clone().try_acquire().await.unwrap();
        warm.unwrap().release().await.unwrap();
        log.take().await;
        proxy.drop_replies(true);
        assert_eq!(
            unavailable(request.try_acquire().await),
            StoreErrorKind::Timeout
        );
        let executed = log.take().await;
        let acquires = executed.iter().filter(|one| one.text.contains("barge"));
        assert_eq!(acquires.count(), 1, "it was executed: {executed:?}");
        // A connection that lost some of its replies is useless. The second connection only showed
        // that another is not answered either.
        eventually("it is replaced", async || proxy.connections() > 2).await;
        proxy.drop_replies(false);
        let undone = Instant::now();
        eventually("both are undone", async || {
            server.keys("lock:[xy]").await.is_empty()
        })
        .await;
        assert!(
            undone.elapsed() < Duration::from_secs(15),
            "not by the lease of 30 s"
        );
    }
}

#[tokio::test]
async fn replies_dropped_while_the_rest_is_waited_for_leave_no_lock_behind() {
    const SHORT: u64 = 4;
    for wait in [SHORT, 30] {
        let (server, proxy, client) = behind_proxy().await;
        let other = crate::client(&server.url()).await;
        let held = other.lock("y").acquire().await.unwrap();
        let request = client.multi_lock(["x", "y"]).fenced();
        let waiting = tokio::spawn(request.wait(Duration::from_secs(wait)).acquire());
        until_waiting(&other, "y", 1).await;
        // It is handed the second key, and hears neither that nor any answer.
        proxy.drop_replies(true);
        held.release().await.unwrap();
        if wait == SHORT {
            unavailable(waiting.await.unwrap());
            proxy.drop_replies(false);
        } else {
            eventually("it has noticed", async || proxy.connections() > 2).await;
            proxy.drop_replies(false);
            let guard = waiting.await.unwrap().unwrap();
            assert!(guard.is_held());
            assert_eq!(server.keys("lock:[xy]").await, ["lock:x", "lock:y"]);
            guard.release().await.unwrap();
        }
        let ended = Instant::now();
        eventually("nothing is left", async || {
            server.keys("lock:[xy]").await.is_empty()
                && server.keys("lock:%queue*").await.is_empty()
        })
        .await;
        assert!(ended.elapsed() < Duration::from_secs(15), "not by a lease");
    }
}

#[tokio::test]
async fn a_connection_cut_between_request_and_reply_gives_the_locks_all_the_same() {
    let (server, proxy, client) = patiently_behind_proxy().await;
    let request = client.multi_lock(["y", "x"]).fenced();
    let warm = request.clone().acquire().await.unwrap();
    warm.release().await.unwrap();
    proxy.cut_after_next("evalsha");
    let guard = request.acquire().await.unwrap();
    assert_eq!(proxy.connections(), 2);
    // The first command took the locks as well, under other tokens. Its undo must leave these
    // alone.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.keys("lock:[xy]").await, ["lock:x", "lock:y"]);
    assert_eq!(guard.fencing_tokens().unwrap().len(), 2);
    guard.release().await.unwrap();
    eventually("nothing is left", async || {
        server.keys("lock:[xy]").await.is_empty()
    })
    .await;
    assert_eq!(client.health().await.unwrap().lost, 0);
}

#[tokio::test]
async fn a_command_that_arrives_late_over_a_connection_that_was_replaced_is_undone() {
    for granted in [false, true] {
        let (server, proxy, _) = behind_proxy().await;
        let builder = LockClient::builder().command_timeout(Duration::from_millis(200));
        let client = builder.url(proxy.url()).connect().await.unwrap();
        let warm = client.multi_lock(["x", "y"]).acquire().await.unwrap();
        warm.release().await.unwrap();
        let mut log = server.requests().await;
        proxy.delay(Duration::from_secs(3));
        if granted {
            let request = client.multi_lock(["x", "y"]).wait(Duration::from_secs(20));
            let request = started(request.acquire()).await;
            for _ in 0..2 {
                unavailable(client.lock("other").try_acquire().await);
            }
            proxy.delay(Duration::ZERO);
            request.await.unwrap().unwrap().release().await.unwrap();
        } else {
            for _ in 0..2 {
                unavailable(client.multi_lock(["x", "y"]).try_acquire().await);
            }
            proxy.delay(Duration::ZERO);
        }
        eventually("the late command is carried out", async || {
            let requests = log.take().await;
            requests.iter().any(|one| one.text.contains("\"barge\""))
        })
        .await;
        let limit = Duration::from_secs(20);
        lock_testkit::eventually_within(limit, "it is undone, not by its lease", async || {
            server.keys("lock:[xy]").await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_is_repeated_until_it_is_known() {
    let (server, proxy, client) = behind_proxy().await;
    let guard = client.multi_lock(["x", "y"]).acquire().await.unwrap();
    proxy.freeze();
    assert_eq!(unavailable(guard.release().await), StoreErrorKind::Timeout);
    assert_eq!(server.keys("lock:[xy]").await.len(), 2);
    proxy.thaw();
    let thawed = Instant::now();
    eventually("both are released", async || {
        server.keys("lock:[xy]").await.is_empty()
    })
    .await;
    assert!(
        thawed.elapsed() < Duration::from_secs(15),
        "not by the lease of 30 s"
    );
    assert_eq!(client.health().await.unwrap().release_failures, 1);
}

#[tokio::test]
async fn a_dead_store_is_unavailable_within_the_longer_of_wait_and_command_timeout() {
    let second = Duration::from_secs(1);
    for (busy, wait, longest) in [
        (false, Some(Duration::ZERO), COMMAND_TIMEOUT),
        (false, Some(COMMAND_TIMEOUT / 5), COMMAND_TIMEOUT),
        (false, Some(2 * second), 2 * second),
        (true, Some(3 * second), 3 * second),
        // As long as the client's default wait without an answer.
        (false, None, 2 * second),
        (true, None, 2 * second + COMMAND_TIMEOUT),
    ] {
        let (server, proxy, _) = behind_proxy().await;
        let other = client(&server.url()).await;
        let builder = LockClient::builder().url(proxy.url()).wait(2 * second);
        let client = builder.connect().await.unwrap();
        let held = other.lock("y").acquire().await.unwrap();
        let request = client.multi_lock(if busy { ["x", "y"] } else { ["x", "z"] });
        let request = match wait {
            Some(wait) => request.wait(wait),
            None => request.wait_forever(),
        };
        if !busy {
            proxy.freeze();
        }
        let asked = Instant::now();
        let request = tokio::spawn(request.acquire());
        let mut since = asked;
        if busy {
            until_waiting(&other, "y", 1).await;
            if wait.is_none() {
                since = Instant::now();
            }
            proxy.freeze();
        }
        unavailable(request.await.unwrap());
        let took = since.elapsed();
        assert!(took <= longest + SLACK, "{busy} {wait:?}: {took:?}");
        proxy.thaw();
        held.release().await.unwrap();
        eventually("nothing is left", async || {
            server.keys("lock:[xyz]").await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_partition_loses_all_before_the_next_one_gets_any() {
    let (server, proxy, cut_off) = behind_proxy().await;
    let other = client(&server.url()).await;
    let request = cut_off.multi_lock(["x", "y"]).lease(Duration::from_secs(1));
    let guard = request.renew(true).acquire().await.unwrap();
    proxy.freeze();
    let granted = async |key: &str| {
        let next = other.lock(key).acquire().await.unwrap();
        (next, guard.is_held())
    };
    let (x, y, ()) = tokio::join!(granted("x"), granted("y"), guard.lost());
    assert!(!x.1 && !y.1, "at the grant");
}

#[tokio::test]
async fn shutdown_waits_for_a_request_under_way_and_undoes_its_grant() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let observer = client(&server.url()).await;
    // From now on the server has the scripts.
    for _ in 0..2 {
        let held = observer.lock("y").acquire().await.unwrap();
        let gave_up = observer
            .multi_lock(["x", "y"])
            .wait(Duration::from_millis(50));
        assert!(matches!(
            gave_up.acquire().await,
            Err(LockError::Busy { .. })
        ));
        held.release().await.unwrap();
        let warm = observer.multi_lock(["x", "y"]).acquire().await.unwrap();
        warm.release().await.unwrap();
    }
    for busy in [false, true] {
        let held = match busy {
            true => Some(observer.lock("y").acquire().await.unwrap()),
            false => None,
        };
        let client = client(&proxy.url()).await;
        let request = client.multi_lock(["x", "y"]).wait(Duration::from_secs(20));
        proxy.delay(Duration::from_millis(60));
        let request = started(request.acquire()).await;
        if busy {
            until_waiting(&observer, "y", 1).await;
        }
        client.shutdown(Duration::ZERO).await;
        assert!(request.is_finished(), "it ended before the shutdown did");
        assert!(matches!(request.await.unwrap(), Err(LockError::Shutdown)));
        assert_eq!(server.keys("lock:x").await, NOBODYS);
        assert_eq!(server.keys("lock:%queue*").await, NOBODYS);
        proxy.delay(Duration::ZERO);
        if let Some(held) = held {
            held.release().await.unwrap();
        }
    }
}
