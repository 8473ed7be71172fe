//! Permits when replies are lost, connections break and processes die.

use std::time::{Duration, Instant};

use lock_runtime::{Lock, LockClient, LockError, LostReason, StoreErrorKind};
use lock_testkit::{Proxy, RedisServer, eventually, eventually_within};

use crate::{SLACK, client, unavailable, until_waiting, worker};

/// Two clients, one of them behind a network that can fail.
struct Scene {
    server: RedisServer,
    proxy: Proxy,
    client: LockClient,
    other: LockClient,
}

impl Scene {
    async fn start() -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        let (client, other) = (client(&proxy.url()).await, client(&server.url()).await);
        // From now on the server has the scripts, and both clients have their subscription.
        for client in [&client, &other] {
            let warm = client.semaphore("warm", 1).permit().await.unwrap();
            warm.release().await.unwrap();
        }
        Self {
            server,
            proxy,
            client,
            other,
        }
    }

    async fn holders(&self) -> usize {
        self.other.inspect("k").await.unwrap().holders
    }

    /// How many of three permits the other client can have.
    async fn free(&self) -> u32 {
        for permits in [3, 2, 1] {
            let guard = of_three(&self.other, permits).try_acquire().await.unwrap();
            if let Some(guard) = guard {
                guard.release().await.unwrap();
                return permits;
            }
        }
        0
    }
}

fn of_three(client: &LockClient, permits: u32) -> Lock {
    let request = client.semaphore("k", 3).permits(permits);
    request.wait(Duration::from_secs(20))
}

/// Long before a lease of 30 s has ended.
const UNDONE: Duration = Duration::from_secs(15);

#[tokio::test]
async fn an_acquire_whose_reply_is_dropped_gives_its_permits_back() {
    for fenced in [false, true] {
        let scene = Scene::start().await;
        let held = of_three(&scene.other, 1).acquire().await.unwrap();
        scene.proxy.drop_replies(true);
        let request = of_three(&scene.client, 2);
        let request = if fenced { request.fenced() } else { request };
        let result = request.try_acquire().await;
        assert_eq!(unavailable(result), StoreErrorKind::Timeout);
        assert_eq!(scene.holders().await, 2, "the server did execute it");
        scene.proxy.drop_replies(false);
        eventually_within(UNDONE, "it is undone", async || scene.holders().await == 1).await;
        assert_eq!(scene.free().await, 2);
        assert!(held.is_held());
    }
}

#[tokio::test]
async fn a_command_that_is_repeated_counts_its_holder_once() {
    for fenced in [false, true] {
        let scene = Scene::start().await;
        let request = of_three(&scene.client, 2);
        let request = if fenced { request.fenced() } else { request };
        let requests = scene.proxy.requests_named("EVALSHA");
        // Carried out, and its reply lost. (Only in tests does a connection go on after it lost a
        // reply: another answer, such as that to a sign of life, would be taken for it.)
        scene.proxy.cut_after_next("EVALSHA");
        let acquiring = tokio::spawn(request.acquire());
        let guard = acquiring.await.unwrap().unwrap();
        let sent = scene.proxy.requests_named("EVALSHA") - requests;
        assert!(sent >= 2, "it was repeated: {sent}");
        assert_eq!((scene.holders().await, scene.free().await), (1, 1));
        let last = of_three(&scene.other, 1).acquire().await.unwrap();
        scene.proxy.cut_after_next("evalsha");
        // However often it is released.
        guard.release().await.unwrap_or_else(|error| {
            assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        });
        eventually_within(UNDONE, "it is released", async || {
            scene.holders().await == 1
        })
        .await;
        assert_eq!(scene.free().await, 2);
        last.release().await.unwrap();
        assert_eq!(scene.free().await, 3);
    }
}

#[tokio::test]
async fn a_connection_cut_between_request_and_reply_gives_the_permits_all_the_same() {
    let scene = Scene::start().await;
    for fenced in [false, true] {
        let request = of_three(&scene.client, 2);
        let request = if fenced { request.fenced() } else { request };
        scene.proxy.cut_after_next("evalsha");
        let guard = request.acquire().await.unwrap();
        assert_eq!((scene.holders().await, scene.free().await), (1, 1));
        guard.release().await.unwrap();
        assert_eq!(scene.free().await, 3);
    }
}

#[tokio::test]
async fn a_waiter_keeps_one_place_however_often_it_has_to_ask() {
    let scene = Scene::start().await;
    let held = of_three(&scene.other, 2).acquire().await.unwrap();
    let first = tokio::spawn(of_three(&scene.client, 2).acquire());
    until_waiting(&scene.other, "k", 1).await;
    let second = tokio::spawn(of_three(&scene.other, 2).acquire());
    until_waiting(&scene.other, "k", 2).await;
    for _ in 0..3 {
        let connections = scene.proxy.connections();
        scene.proxy.cut();
        let requests = scene.proxy.requests_named("EVALSHA");
        eventually("it has asked again", async || {
            scene.proxy.connections() > connections
                && scene.proxy.requests_named("EVALSHA") > requests
        })
        .await;
        assert_eq!(scene.other.inspect("k").await.unwrap().waiting, 2);
    }
    held.release().await.unwrap();
    let first = first.await.unwrap().unwrap();
    assert!(!second.is_finished(), "it has not lost its place");
    first.release().await.unwrap();
    assert!(second.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_is_repeated_and_gives_back_no_more_than_was_held() {
    let scene = Scene::start().await;
    let one = of_three(&scene.client, 1).acquire().await.unwrap();
    let two = of_three(&scene.other, 2).acquire().await.unwrap();
    scene.proxy.drop_replies(true);
    assert_eq!(unavailable(one.release().await), StoreErrorKind::Timeout);
    assert_eq!(scene.free().await, 1, "the server did execute it");
    // Another client has it by the time of the repeats.
    let next = of_three(&scene.other, 1).acquire().await.unwrap();
    let requests = scene.proxy.requests_named("EVALSHA");
    scene.proxy.drop_replies(false);
    eventually_within(UNDONE, "it is repeated", async || {
        scene.proxy.requests_named("EVALSHA") > requests
    })
    .await;
    assert_eq!((scene.holders().await, scene.free().await), (2, 0));
    assert!(next.is_held());
    drop((two, next));
}

#[tokio::test]
async fn a_lost_grant_message_costs_time_and_not_the_permits() {
    let scene = Scene::start().await;
    for round in 0..3 {
        let held = of_three(&scene.other, 3).acquire().await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for place in 1..=3 {
            waiting.spawn(of_three(&scene.client, 1).acquire());
            until_waiting(&scene.other, "k", place).await;
        }
        match round {
            0 => scene.proxy.cut(),
            1 => {
                let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
                scene.server.command(&kill).await;
            }
            // The messages themselves are lost, and the connection stays.
            _ => scene.proxy.drop_replies(true),
        }
        // The holder's connection may have been killed as well. A dropped guard is released all the
        // same.
        drop(held);
        if round == 2 {
            eventually("the messages are gone", async || scene.holders().await == 3).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            scene.proxy.drop_replies(false);
        }
        let mut guards = Vec::new();
        while let Some(guard) = waiting.join_next().await {
            guards.push(guard.unwrap().unwrap());
        }
        assert_eq!((scene.holders().await, scene.free().await), (3, 0));
        for guard in guards {
            guard.release().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_command_that_arrives_late_over_a_connection_that_was_replaced_is_undone() {
    let scene = Scene::start().await;
    let mut log = scene.server.requests().await;
    scene.proxy.delay(Duration::from_secs(3));
    for _ in 0..2 {
        unavailable(of_three(&scene.client, 2).try_acquire().await);
    }
    scene.proxy.delay(Duration::ZERO);
    eventually("the late command is carried out", async || {
        let requests = log.take().await;
        let mut texts = requests.iter().map(|one| &one.text);
        texts.any(|text| text.contains("lock:k") && text.contains("respect"))
    })
    .await;
    let limit = Duration::from_secs(20);
    eventually_within(limit, "it is undone, not by its lease", async || {
        scene.server.keys("lock:k").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_partition_loses_the_hold_before_its_permits_go_to_the_next() {
    let scene = Scene::start().await;
    let lease = Duration::from_secs(1);
    let request = of_three(&scene.client, 2).lease(lease).renew(true);
    let cut_off = request.acquire().await.unwrap();
    let stays = of_three(&scene.other, 1).acquire().await.unwrap();
    scene.proxy.freeze();
    let granted = async {
        let next = of_three(&scene.other, 2).acquire().await.unwrap();
        (next, cut_off.is_held())
    };
    let ((_next, was_held), ()) = tokio::join!(granted, cut_off.lost());
    assert!(!was_held, "at the grant");
    assert!(stays.is_held());
    scene.proxy.thaw();
    let late = cut_off.release().await;
    assert!(
        matches!(
            late,
            Err(LockError::Lost {
                reason: LostReason::NotRenewed,
                ..
            })
        ),
        "{late:?}"
    );
    assert_eq!(scene.free().await, 0);
}

#[tokio::test]
async fn permits_of_a_process_that_was_killed_come_back_with_its_lease() {
    let scene = Scene::start().await;
    let mut holder = worker(&scene.server.url()).await;
    let stays = of_three(&scene.other, 1).acquire().await.unwrap();
    holder.send("hold a k permits=2/3 lease=2000 renew");
    holder.wait_for("held a").await;
    let big = tokio::spawn(of_three(&scene.client, 2).acquire());
    until_waiting(&scene.other, "k", 1).await;
    // It lives longer than its lease, because it is renewed.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(!big.is_finished());
    holder.kill();
    let killed = Instant::now();
    let big = big.await.unwrap().unwrap();
    assert!(
        killed.elapsed() <= Duration::from_secs(2 + 1) + SLACK,
        "{:?}",
        killed.elapsed()
    );
    assert!(big.is_held() && stays.is_held());
    drop((big, stays));
    eventually("all are back", async || scene.free().await == 3).await;
}

#[tokio::test]
async fn a_waiting_process_that_was_killed_holds_no_smaller_request_up() {
    let scene = Scene::start().await;
    let _held = of_three(&scene.other, 1).acquire().await.unwrap();
    let mut waiter = worker(&scene.server.url()).await;
    waiter.send("hold a k permits=3/3");
    until_waiting(&scene.other, "k", 1).await;
    let small = tokio::spawn(of_three(&scene.client, 2).acquire());
    until_waiting(&scene.other, "k", 2).await;
    assert!(!small.is_finished());
    waiter.kill();
    let killed = Instant::now();
    assert!(small.await.unwrap().unwrap().is_held());
    // The next look, which comes once a second.
    let limit = Duration::from_secs(1) + SLACK;
    assert!(killed.elapsed() < limit, "{:?}", killed.elapsed());
}

#[tokio::test]
async fn permits_of_four_processes_are_never_exceeded_and_all_tasks_get_their_turn() {
    let server = RedisServer::start().await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(worker(&server.url()).await);
    }
    for worker in &mut workers {
        worker.send("contend k 16 3000 permits=2/6");
    }
    // The beginning and the end of each turn, on the machine's clock.
    let (mut changes, mut tasks) = (Vec::new(), 0);
    for worker in &mut workers {
        worker.wait_for("contended").await;
        let mut served = std::collections::HashSet::new();
        for event in worker.take_events() {
            let Some(turn) = event.text.strip_prefix("turn ") else {
                continue;
            };
            let numbers: Result<Vec<u64>, _> = turn.split(' ').map(str::parse).collect();
            let [task, from, to] = numbers.unwrap()[..] else {
                panic!("{turn}")
            };
            served.insert(task);
            changes.extend([(from, 2), (to, -2)]);
        }
        tasks += served.len();
    }
    assert_eq!(tasks, 4 * 16, "every task gets its turn");
    changes.sort_unstable();
    let (mut out, mut most) = (0, 0);
    for (_, change) in &changes {
        out += change;
        most = most.max(out);
    }
    assert!(most <= 6, "{most} permits of 6");
    println!("{} turns, {most} permits at once", changes.len() / 2);
}
