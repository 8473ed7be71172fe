//! Readers and writers, and holds in shares in general, when processes die, replies are lost and
//! servers restart.

use std::time::{Duration, Instant};

use lock_runtime::{Lock, LockClient, LockError, LostReason, StoreErrorKind};
use lock_testkit::{Proxy, RedisServer, eventually, eventually_within};

use crate::{COMMAND_TIMEOUT, SLACK, client, timed, unavailable, until_waiting, worker};

fn kinds(client: &LockClient) -> [Lock; 3] {
    [
        client.rw_lock("k").read(),
        client.rw_lock("k").write(),
        client.semaphore("k", 3).permits(2),
    ]
}

#[tokio::test]
async fn a_killed_reader_is_not_kept_alive_by_another_one() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let (mut dead, mut live) = (worker(&server.url()).await, worker(&server.url()).await);
    for worker in [&mut dead, &mut live] {
        worker.send("hold a k read lease=2000 renew");
        worker.wait_for("held a").await;
    }
    let writer = tokio::spawn(observer.rw_lock("k").write().acquire());
    until_waiting(&observer, "k", 1).await;
    dead.kill();
    let killed = Instant::now();
    eventually("it is no reader any more", async || {
        observer.inspect("k").await.unwrap().holders == 1
    })
    .await;
    assert!(killed.elapsed() < Duration::from_secs(2) + SLACK);
    assert!(!writer.is_finished());
    live.send("release a");
    let released = Instant::now();
    assert!(writer.await.unwrap().unwrap().is_held());
    assert!(released.elapsed() < Duration::from_millis(700));
}

#[tokio::test]
async fn a_killed_writer_costs_no_more_than_its_lease() {
    let server = RedisServer::start().await;
    let observer = client(&server.url()).await;
    let mut dead = worker(&server.url()).await;
    dead.send("hold a k write lease=2000 renew");
    dead.wait_for("held a").await;
    let mut readers = Vec::new();
    for place in 1..=2 {
        readers.push(tokio::spawn(observer.rw_lock("k").read().acquire()));
        until_waiting(&observer, "k", place).await;
    }
    dead.kill();
    let killed = Instant::now();
    for reader in readers {
        assert!(reader.await.unwrap().unwrap().is_held());
    }
    let limit = Duration::from_secs(2 + 1) + SLACK;
    assert!(killed.elapsed() < limit, "{:?}", killed.elapsed());
}

#[tokio::test]
async fn an_acquire_whose_reply_is_dropped_leaves_nothing_behind() {
    for kind in 0..3 {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        let (client, other) = (client(&proxy.url()).await, client(&server.url()).await);
        for client in [&client, &other] {
            client.rw_lock("warm").read().run(async {}).await.unwrap();
        }
        proxy.drop_replies(true);
        let result = kinds(&client)[kind].clone().try_acquire().await;
        assert_eq!(unavailable(result), StoreErrorKind::Timeout);
        assert_eq!(other.inspect("k").await.unwrap().holders, 1, "carried out");
        proxy.drop_replies(false);
        let limit = Duration::from_secs(15);
        eventually_within(limit, "undone, not by its lease", async || {
            server.keys("lock:k").await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_downgrade_whose_reply_is_lost_can_be_repeated() {
    for carried_out in [false, true] {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        let (client, other) = (client(&proxy.url()).await, client(&server.url()).await);
        let lease = Duration::from_secs(6);
        let guard = client.rw_lock("k").write().lease(lease).renew(true);
        let guard = guard.acquire().await.unwrap();
        let reader = tokio::spawn(other.rw_lock("k").read().wait_forever().acquire());
        until_waiting(&other, "k", 1).await;
        if carried_out {
            proxy.drop_replies(true);
        } else {
            proxy.freeze();
        }
        let lost = unavailable(guard.downgrade().await);
        assert_eq!(lost, StoreErrorKind::Timeout);
        if carried_out {
            proxy.drop_replies(false);
        } else {
            proxy.cut();
            proxy.thaw();
        }
        eventually("it is repeated", async || guard.downgrade().await.is_ok()).await;
        assert!(reader.await.unwrap().unwrap().is_held());
        let writer = other.rw_lock("k").write().try_acquire().await.unwrap();
        assert!(writer.is_none() && guard.is_held());
        // It is renewed and released as a reader.
        let before = guard.remaining();
        eventually("it is renewed", async || guard.remaining() > before).await;
        guard.release().await.unwrap();
        eventually("both have left", async || {
            server.keys("lock:k").await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_restarted_empty_loses_every_holder_at_the_next_renewal() {
    for kind in 0..3 {
        let server = RedisServer::start().await;
        let client = client(&server.url()).await;
        let lease = Duration::from_secs(3);
        let request = kinds(&client)[kind].clone().lease(lease).renew(true);
        let guard = request.clone().fenced().acquire().await.unwrap();
        let token = guard.fencing_token();
        server.restart_empty().await;
        let ((), elapsed) = timed(guard.lost()).await;
        let limit = lease / 3 + 2 * COMMAND_TIMEOUT + SLACK;
        assert!(elapsed <= limit, "{kind}: {elapsed:?}");
        match guard.release().await {
            Err(LockError::Lost { reason, .. }) => assert_eq!(reason, LostReason::Gone),
            other => panic!("{kind}: {other:?}"),
        }
        // The next one is renewed beyond its lease, and its token is higher.
        let next = request.fenced().acquire().await.unwrap();
        assert!(next.fencing_token() > token);
        tokio::time::sleep(lease + lease / 3).await;
        assert!(next.is_held());
        assert_eq!(client.inspect("k").await.unwrap().holders, 1);
    }
}

#[tokio::test]
async fn holders_survive_a_server_that_comes_back_with_its_data() {
    for kind in 0..3 {
        let server = RedisServer::builder().appendonly(true).start().await;
        let client = crate::patient_client(&server.url()).await;
        let request = kinds(&client)[kind].clone();
        let request = request.lease(Duration::from_secs(6)).renew(true);
        let guard = request.acquire().await.unwrap();
        server.kill();
        server.restart().await;
        let before = guard.remaining();
        eventually("it is renewed", async || guard.remaining() > before).await;
        let found = client.inspect("k").await.unwrap();
        assert_eq!((found.holders, found.waiting), (1, 0));
        let all = client.rw_lock("k").write();
        let all = [all, client.semaphore("k", 3).permits(2)][kind / 2].clone();
        assert!(all.clone().try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        assert!(all.try_acquire().await.unwrap().is_some());
    }
}

#[tokio::test]
async fn every_waiter_takes_a_place_again_after_a_restart() {
    let server = RedisServer::start().await;
    let holder = client(&server.url()).await;
    let waiter = crate::enduring_client(&server.url()).await;
    for kind in 0..3 {
        let held = [
            holder.rw_lock("k").write(),
            holder.semaphore("k", 3).permits(3),
        ][kind / 2]
            .clone();
        let held = held.acquire().await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let request = kinds(&waiter)[kind].clone().wait(Duration::from_secs(25));
            waiting.spawn(async move { request.acquire().await?.release().await });
        }
        until_waiting(&holder, "k", 3).await;
        server.restart_empty().await;
        while let Some(served) = waiting.join_next().await {
            served.unwrap().unwrap();
        }
        drop(held);
        eventually("nothing is left", async || {
            server.keys("lock:k").await.is_empty()
        })
        .await;
    }
}
