//! Replies that don't come, connections that freeze or break.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, StoreErrorKind};
use lock_testkit::{Proxy, RedisServer, eventually};

use crate::{COMMAND_TIMEOUT, client, unavailable, until_waiting};

pub(crate) async fn behind_proxy() -> (RedisServer, Proxy, LockClient) {
    behind_proxy_with(COMMAND_TIMEOUT).await
}

/// The same, where connections are counted: a busy machine's late answers bring no other one.
pub(crate) async fn patiently_behind_proxy() -> (RedisServer, Proxy, LockClient) {
    behind_proxy_with(10 * COMMAND_TIMEOUT).await
}

async fn behind_proxy_with(command_timeout: Duration) -> (RedisServer, Proxy, LockClient) {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let builder = LockClient::builder().url(proxy.url());
    let builder = builder.command_timeout(command_timeout);
    // Replies that are lost for a while must not end requests as silence would.
    let builder = builder.unavailable_after(Duration::from_secs(60));
    let client = builder.connect().await.unwrap();
    (server, proxy, client)
}

#[tokio::test]
async fn an_acquire_whose_reply_is_dropped_leaves_no_lock_behind() {
    for fenced in [false, true] {
        let (server, proxy, client) = behind_proxy().await;
        let mut log = server.requests().await;
        proxy.drop_replies(true);
        let request = client.lock("k");
        let request = if fenced { request.fenced() } else { request };
        assert_eq!(
            unavailable(request.try_acquire().await),
            StoreErrorKind::Timeout
        );
        let executed = log.take().await;
        assert!(
            executed.iter().any(|one| one.text.contains("lock:k")),
            "the server did execute it: {executed:?}"
        );
        proxy.drop_replies(false);
        let undone = Instant::now();
        eventually("the lock is undone", async || {
            server.keys("lock:k").await.is_empty()
        })
        .await;
        assert!(
            undone.elapsed() < Duration::from_secs(15),
            "not by its lease of 30 s"
        );
    }
}

#[tokio::test]
async fn a_connection_cut_between_request_and_reply_gives_the_lock_all_the_same() {
    for (command, fenced) in [("set", false), ("evalsha", true)] {
        let (server, proxy, client) = patiently_behind_proxy().await;
        let request = || {
            if fenced {
                client.lock("k").fenced()
            } else {
                client.lock("k")
            }
        };
        request().acquire().await.unwrap().release().await.unwrap();
        proxy.cut_after_next(command);
        let guard = request().acquire().await.unwrap();
        assert_eq!(proxy.connections(), 2);
        guard.release().await.unwrap();
        eventually("nothing is left", async || {
            server.keys("lock:k").await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_is_repeated_until_it_is_known() {
    let (server, proxy, client) = behind_proxy().await;
    let guard = client.lock("k").acquire().await.unwrap();
    proxy.freeze();
    assert_eq!(unavailable(guard.release().await), StoreErrorKind::Timeout);
    assert_eq!(server.keys("lock:k").await, ["lock:k"]);
    proxy.thaw();
    let thawed = Instant::now();
    eventually("it is released", async || {
        server.keys("lock:k").await.is_empty()
    })
    .await;
    assert!(
        thawed.elapsed() < Duration::from_secs(15),
        "not by its lease of 30 s"
    );
    assert_eq!(client.health().await.unwrap().release_failures, 1);
}

#[tokio::test]
async fn an_extension_whose_reply_is_lost_does_not_outlive_its_release() {
    let server = RedisServer::builder().appendonly(true);
    let server = server.arg("--appendfsync").arg("always").start().await;
    let proxy = Proxy::start(server.addr()).await;
    let (cut_off, operator) = (client(&proxy.url()).await, client(&server.url()).await);
    let lease = Duration::from_secs(1);
    let request = cut_off.lock("k").lease(lease).renew(true);
    let guard = request.acquire().await.unwrap();
    // From now on the server knows the script.
    guard.extend(lease).await.unwrap();
    proxy.drop_replies(true);
    let hour = Duration::from_secs(3600);
    assert_eq!(
        unavailable(guard.extend(hour).await),
        StoreErrorKind::Timeout
    );
    let stored = operator.inspect("k").await.unwrap().remaining;
    assert!(stored > Some(hour / 2), "{stored:?}");
    server.kill();
    guard.lost().await;
    drop(guard);
    // The server is away for longer than the lease that was granted.
    tokio::time::sleep(4 * lease).await;
    proxy.drop_replies(false);
    server.restart().await;
    eventually("it is released", async || {
        server.keys("lock:k").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_body_keeps_its_result_when_the_release_fails() {
    let (_server, proxy, client) = behind_proxy().await;
    let result = client.lock("k").run(async {
        proxy.freeze();
        42
    });
    assert_eq!(result.await.unwrap(), 42);
}

#[tokio::test]
async fn a_connection_that_stops_answering_is_replaced() {
    let (_server, proxy, client) = behind_proxy().await;
    let guard = client.lock("k").acquire().await.unwrap();
    proxy.freeze();
    for _ in 0..2 {
        unavailable(client.lock("other").try_acquire().await);
    }
    eventually("a new connection is made", async || proxy.connections() > 2).await;
    proxy.thaw();
    guard.release().await.unwrap();
    assert!(client.lock("other").acquire().await.unwrap().is_held());
}

#[tokio::test]
async fn a_lost_grant_message_costs_time_and_not_the_lock() {
    let (server, proxy, waiter) = behind_proxy().await;
    let holder = client(&server.url()).await;
    for round in 0..3 {
        let held = holder.lock("k").acquire().await.unwrap();
        let waiting = tokio::spawn(waiter.lock("k").acquire());
        until_waiting(&holder, "k", 1).await;
        match round {
            0 => proxy.cut(),
            1 => _ = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await,
            // The message itself is lost, and the connection stays.
            _ => proxy.drop_replies(true),
        }
        let released = held.release().await;
        // Its own connection hears other clients, so it is killed as well. The release is repeated
        // in the background.
        assert!(released.is_ok() || round == 1, "{released:?}");
        if round == 2 {
            eventually("the message is gone", async || {
                !server.keys("lock:k").await.is_empty()
            })
            .await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            proxy.drop_replies(false);
        }
        waiting.await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_partition_loses_the_hold_before_the_next_one_gets_it() {
    let (server, proxy, cut_off) = behind_proxy().await;
    let other = client(&server.url()).await;
    let lease = Duration::from_secs(1);
    let guard = cut_off
        .lock("k")
        .lease(lease)
        .renew(true)
        .acquire()
        .await
        .unwrap();
    proxy.freeze();
    let granted = async {
        let next = other.lock("k").acquire().await.unwrap();
        (next, guard.is_held())
    };
    let ((_next, was_held), ()) = tokio::join!(granted, guard.lost());
    assert!(!was_held, "at the grant");
}

/// Starts a future before anything else happens, and moves it on into a task.
pub(crate) async fn started<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    let mut future = Box::pin(future);
    let pending =
        std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending()));
    assert!(pending.await, "it waits for the store");
    tokio::spawn(future)
}

/// From now on the server knows every script, which saves round trips.
async fn know_the_scripts(server: &RedisServer) {
    let client = client(&server.url()).await;
    let held = client.lock("warm").fair().acquire().await.unwrap();
    let gave_up = client.lock("warm").fair().wait(Duration::from_millis(1));
    assert!(matches!(
        gave_up.acquire().await,
        Err(LockError::Busy { .. })
    ));
    held.release().await.unwrap();
    eventually("its place is given up", async || {
        server.keys("lock:*warm*").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn shutdown_waits_for_a_release_under_way() {
    let (server, proxy, client) = behind_proxy().await;
    know_the_scripts(&server).await;
    let guard = client.lock("k").acquire().await.unwrap();
    proxy.delay(Duration::from_millis(150));
    let release = started(guard.release()).await;
    client.shutdown(Duration::ZERO).await;
    assert_eq!(server.keys("lock:*").await, Vec::<String>::new());
    release.await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_waits_for_a_request_under_way_and_undoes_its_grant() {
    let (server, proxy, client) = behind_proxy().await;
    know_the_scripts(&server).await;
    for fair in [false, true] {
        let client = if fair {
            crate::client(&proxy.url()).await
        } else {
            client.clone()
        };
        let request = client.lock("k").wait(Duration::from_secs(20));
        let request = if fair { request.fair() } else { request };
        proxy.delay(Duration::from_millis(60));
        let request = started(request.acquire()).await;
        client.shutdown(Duration::ZERO).await;
        assert!(
            request.is_finished(),
            "{fair}: it ended before the shutdown did"
        );
        assert_eq!(server.keys("lock:*").await, Vec::<String>::new(), "{fair}");
        assert!(matches!(request.await.unwrap(), Err(LockError::Shutdown)));
        proxy.delay(Duration::ZERO);
    }
}

#[tokio::test]
async fn shutdown_waits_until_its_waiters_have_left_the_queue() {
    let (server, proxy, client) = behind_proxy().await;
    let other = crate::client(&server.url()).await;
    let held = other.lock("k").acquire().await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..5 {
        waiting.spawn(client.lock("k").fair().wait_forever().acquire());
    }
    until_waiting(&other, "k", 5).await;
    know_the_scripts(&server).await;
    proxy.delay(Duration::from_millis(100));
    client.shutdown(Duration::ZERO).await;
    assert_eq!(server.keys("lock:%queue*").await, Vec::<String>::new());
    while let Some(request) = waiting.join_next().await {
        assert!(matches!(request.unwrap(), Err(LockError::Shutdown)));
    }
    held.release().await.unwrap();
    assert_eq!(server.keys("*").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_busy_lock_behind_a_slow_network_is_busy_and_never_unavailable() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let holder = client(&server.url()).await;
    let _held = holder.lock("k").acquire().await.unwrap();
    let mut requests = tokio::task::JoinSet::new();
    proxy.delay_replies(TIMEOUT / 5);
    // The wait ends at any point of a command's time.
    for step in 0..12 {
        let builder = LockClient::builder().url(proxy.url());
        let builder = builder.command_timeout(TIMEOUT);
        let builder = builder.unavailable_after(4 * TIMEOUT);
        // Several replies.
        let builder = builder.connect_timeout(5 * TIMEOUT);
        let wait = Duration::from_millis(4400 + 40 * step);
        requests.spawn(async move {
            let client = builder.connect().await.unwrap();
            for round in 0..3 {
                let request = client.lock("k").wait(wait);
                let request = if round == 1 { request.fair() } else { request };
                let result = request.acquire().await;
                assert!(
                    matches!(result, Err(LockError::Busy { .. })),
                    "{wait:?}: {result:?}"
                );
            }
        });
    }
    while let Some(request) = requests.join_next().await {
        request.unwrap();
    }
}

#[tokio::test]
async fn a_hold_is_counted_from_before_the_request_and_trusted_for_less_than_its_lease() {
    let (_server, proxy, client) = behind_proxy().await;
    let delay = Duration::from_millis(200);
    let latest = |lease: Duration| lease - lease / 100 - Duration::from_millis(2) - delay;
    proxy.delay_replies(delay);
    let lease = Duration::from_secs(6);
    for fenced in [false, true] {
        let request = client.lock("k").lease(lease);
        let request = if fenced { request.fenced() } else { request };
        let guard = request.acquire().await.unwrap();
        assert!(guard.remaining() <= latest(lease), "{guard:?}");
        guard.extend(2 * lease).await.unwrap();
        assert!(guard.remaining() <= latest(2 * lease), "{guard:?}");
        guard.release().await.unwrap();
    }
    let lease = Duration::from_millis(1500);
    let renewed = client.lock("k").lease(lease).renew(true);
    let renewed = renewed.acquire().await.unwrap();
    let mut before = renewed.remaining();
    eventually("it is renewed", async || {
        let now = renewed.remaining();
        assert!(now <= latest(lease), "{now:?}");
        std::mem::replace(&mut before, now) < now
    })
    .await;
}

#[tokio::test]
async fn a_grant_that_comes_after_its_lease_is_none() {
    let (_server, proxy, client) = behind_proxy().await;
    let request = client.lock("k").lease(Duration::from_millis(300));
    proxy.delay_replies(Duration::from_millis(400));
    let late = request.clone().try_acquire().await;
    assert_eq!(unavailable(late), StoreErrorKind::Timeout);
    let asked = proxy.requests();
    let waiting = tokio::spawn(request.wait(Duration::from_secs(20)).acquire());
    eventually("it has tried again", async || proxy.requests() > asked + 2).await;
    proxy.delay_replies(Duration::ZERO);
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.is_held(), "{guard:?}");
}

#[tokio::test]
async fn a_command_that_arrives_late_over_a_connection_that_was_replaced_is_undone() {
    for granted in [false, true] {
        let (server, proxy, _) = behind_proxy().await;
        let builder = LockClient::builder().command_timeout(Duration::from_millis(200));
        let client = builder.url(proxy.url()).connect().await.unwrap();
        let mut log = server.requests().await;
        proxy.delay(Duration::from_secs(3));
        if granted {
            let request = client.lock("k").wait(Duration::from_secs(20));
            let request = started(request.acquire()).await;
            for _ in 0..2 {
                unavailable(client.lock("other").try_acquire().await);
            }
            proxy.delay(Duration::ZERO);
            request.await.unwrap().unwrap().release().await.unwrap();
        } else {
            for _ in 0..2 {
                unavailable(client.lock("k").try_acquire().await);
            }
            proxy.delay(Duration::ZERO);
        }
        eventually("the late command is carried out", async || {
            let requests = log.take().await;
            let late =
                |one: &lock_testkit::Request| one.command == "set" && one.text.contains("lock:k");
            requests.iter().any(late)
        })
        .await;
        let limit = Duration::from_secs(20);
        lock_testkit::eventually_within(limit, "it is undone, not by its lease", async || {
            server.keys("lock:*").await.is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn every_waiter_takes_a_place_again_over_a_new_connection() {
    let (server, proxy, waiter) = behind_proxy().await;
    let holder = client(&server.url()).await;
    let held = holder.lock("k").acquire().await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let request = waiter.lock("k").fair().wait(Duration::from_secs(60));
        waiting.spawn(async move { request.acquire().await?.release().await });
    }
    until_waiting(&holder, "k", 3).await;
    server.command(&["DEL", "lock:%queue:{lock:k}"]).await;
    proxy.cut();
    // The first of a local queue looks again by itself, the others only when they are told to.
    until_waiting(&holder, "k", 3).await;
    held.release().await.unwrap();
    while let Some(served) = waiting.join_next().await {
        served.unwrap().unwrap();
    }
}

#[tokio::test]
async fn thousands_of_locks_survive_a_stall_that_makes_all_their_renewals_due_at_once() {
    let (_server, proxy, client) = behind_proxy().await;
    let mut guards = Vec::new();
    // In portions: the last reply would take longer than a command may.
    for hundred in 0..40 {
        let mut acquiring = tokio::task::JoinSet::new();
        for number in 0..100 {
            let request = client
                .lock(format!("k:{hundred}:{number}"))
                .lease(Duration::from_secs(12))
                .renew(true);
            acquiring.spawn(request.acquire());
        }
        let acquired = acquiring.join_all().await;
        guards.extend(acquired.into_iter().map(Result::unwrap));
    }
    proxy.freeze();
    // A third of the lease goes by without an answer.
    tokio::time::sleep(Duration::from_secs(5)).await;
    proxy.thaw();
    proxy.delay_replies(Duration::from_millis(15));
    let renewed = |guard: &lock_runtime::Guard| guard.remaining() > Duration::from_secs(7);
    eventually("all are renewed", async || guards.iter().all(renewed)).await;
}

#[tokio::test]
async fn a_server_without_a_free_slot_is_waited_for() {
    let (server, proxy, client) = behind_proxy().await;
    let guard = client.lock("k").acquire().await.unwrap();
    server.command(&["CONFIG", "SET", "maxclients", "8"]).await;
    // The client's own connection is cut, and its slot taken before it comes back.
    proxy.refuse(true);
    proxy.cut();
    let mut taken = Vec::new();
    loop {
        let mut slot = std::net::TcpStream::connect(server.addr()).unwrap();
        slot.set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        // Only a full server sends something at once.
        let full = std::io::Read::read(&mut slot, &mut [0; 64]).is_ok();
        taken.push(slot);
        if full {
            break;
        }
    }
    proxy.refuse(false);
    drop(guard);
    let waiting = tokio::spawn(client.lock("other").wait(Duration::from_secs(20)).acquire());
    let connections = proxy.connections();
    eventually("it was turned away twice", async || {
        proxy.connections() >= connections + 2
    })
    .await;
    drop(taken);
    assert!(waiting.await.unwrap().unwrap().is_held());
    eventually("the dropped guard is released", async || {
        server.keys("lock:k").await.is_empty()
    })
    .await;
    let remaining = Duration::from_secs(20);
    assert!(
        client.lock("k").wait(remaining).acquire().await.is_ok(),
        "long before its lease ended"
    );
}
