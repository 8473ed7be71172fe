//! How long a request waits for a completely silent server.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::{LockClient, LockError, Rate};
use lock_testkit::{RedisServer, eventually};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::{COMMAND_TIMEOUT, SLACK, client, timed, unavailable};

const SILENCE: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(30);

type Ended = (Result<(), LockError>, Duration);

/// Every kind of waiting.
fn all(client: &LockClient) -> JoinSet<(&'static str, Ended)> {
    let mut all = JoinSet::new();
    let requests = [
        ("lock", client.lock("k")),
        ("the second of its key", client.lock("k")),
        ("fair", client.lock("f").fair()),
        ("reader", client.rw_lock("rw").read()),
        ("several", client.multi_lock(["a", "b"])),
        ("for ever", client.lock("e").wait_forever()),
    ];
    for (name, request) in requests {
        let request = if name == "for ever" {
            request
        } else {
            request.wait(LONG)
        };
        all.spawn(async move {
            let (result, took) = timed(request.acquire()).await;
            (name, (result.map(drop), took))
        });
    }
    let latch = client.latch("l");
    all.spawn(async move { ("latch", timed(latch.wait(LONG)).await) });
    let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(LONG);
    all.spawn(async move {
        let (result, took) = timed(limiter.acquire()).await;
        ("limiter", (result.map(drop), took))
    });
    all
}

#[tokio::test]
async fn a_server_that_is_silent_ends_every_request_after_two_seconds() {
    for killed in [true, false] {
        let server = RedisServer::start().await;
        let client = client(&server.url()).await;
        if killed {
            server.kill()
        } else {
            server.pause()
        }
        let mut all = all(&client);
        while let Some(ended) = all.join_next().await {
            let (name, (result, took)) = ended.unwrap();
            unavailable(result);
            assert!(took < SILENCE + SLACK, "{name}: {took:?}, killed: {killed}");
            // A request that may have taken something is not repeated.
            let waits = name == "limiter" || took >= SILENCE * 9 / 10;
            assert!(waits, "{name}: {took:?}, killed: {killed}");
        }
        // A later request has the time of one command.
        let (result, took) = timed(client.lock("later").wait(LONG).acquire()).await;
        unavailable(result);
        assert!(took < COMMAND_TIMEOUT + SLACK, "{took:?}");
    }
}

#[tokio::test]
async fn waiting_requests_end_together_after_two_seconds_of_silence() {
    let server = RedisServer::start().await;
    let (holder, waiter) = (client(&server.url()).await, client(&server.url()).await);
    let _held = holder.lock("k").acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..3 {
        waiting.spawn(timed(waiter.lock("k").wait(LONG).acquire()));
    }
    eventually("all wait", async || {
        waiter.health().await.unwrap().waiting == 3
    })
    .await;
    server.pause();
    let (ended, took) = timed(waiting.join_all()).await;
    for (result, _) in ended {
        unavailable(result);
    }
    // The first of them asks within a second. A second silence more would end beyond this.
    assert!(took < SILENCE * 2 + SLACK, "{took:?}");
}

/// In front of a server: the first connection is silent from a moment on, the second ends after
/// `second`. How many there were.
async fn two_that_fail(
    server: SocketAddr,
    second: Duration,
) -> (SocketAddr, Arc<Notify>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (silent, count) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (falls_silent, counted) = (Arc::clone(&silent), Arc::clone(&count));
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(server).await.unwrap();
            let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let silent = Arc::clone(&falls_silent);
            tokio::spawn(async move {
                let passes = copy_bidirectional(&mut client, &mut server);
                match number {
                    1 => tokio::select! {
                        _ = passes => {}
                        () = silent.notified() => pending().await,
                    },
                    2 => _ = tokio::time::timeout(second, passes).await,
                    _ => _ = passes.await,
                }
            });
        }
    });
    (address, silent, count)
}

/// The one that would take the place of a silent one may have ended before it does.
#[tokio::test]
async fn a_connection_that_ends_before_it_is_used_takes_no_others_place() {
    let server = RedisServer::start().await;
    let (address, silent, count) = two_that_fail(server.addr(), Duration::from_millis(100)).await;
    let client = LockClient::builder().url(format!("redis://{address}"));
    let client = client.command_timeout(Duration::from_secs(5));
    let client = client.connect().await.unwrap();
    silent.notify_one();
    client.lock("k").run(async {}).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
    let health = client.health().await.unwrap();
    assert_eq!(health.servers[0].reconnects, 1, "{health:?}");
}

#[tokio::test]
async fn a_longer_silence_can_be_waited_for_and_ends_as_soon_as_the_server_is_back() {
    // Whether the request asks just then, or pauses between two tries.
    let longer = |more| outage_of(SILENCE * 2 + Duration::from_millis(more));
    let took = tokio::join!(longer(0), longer(300), longer(500), longer(700));
    for took in <[_; 4]>::from(took) {
        // While requests wait, the client reconnects at short intervals.
        assert!(took < Duration::from_millis(250) + SLACK, "{took:?}");
    }
}

/// How long after it a request got its lock that waited all the time.
async fn outage_of(time: Duration) -> Duration {
    let server = RedisServer::start().await;
    let patient = LockClient::builder()
        .url(server.url())
        .unavailable_after(LONG);
    let patient = patient.connect().await.unwrap();
    server.stop().await;
    let waiting = tokio::spawn(patient.lock("k").wait(LONG).acquire());
    tokio::time::sleep(time).await;
    assert!(!waiting.is_finished());
    server.restart_empty().await;
    let (result, took) = timed(waiting).await;
    assert!(result.unwrap().unwrap().is_held());
    took
}

#[tokio::test]
async fn a_client_that_was_never_connected_says_so_after_two_seconds() {
    let server = RedisServer::start().await;
    let url = server.url();
    server.stop().await;
    let client = LockClient::builder().url(url).connect_lazy().unwrap();
    let (result, took) = timed(client.lock("k").wait(LONG).acquire()).await;
    unavailable(result);
    assert!(took < SILENCE + SLACK, "{took:?}");
    let (result, took) = timed(client.lock("k").try_acquire()).await;
    unavailable(result);
    assert!(took < COMMAND_TIMEOUT + SLACK, "{took:?}");
}

#[tokio::test]
async fn a_hold_is_renewed_and_an_undo_is_sent_after_a_longer_silence() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let held = client.lock("k").lease(Duration::from_secs(12)).renew(true);
    let held = held.acquire().await.unwrap();
    server.pause();
    let (result, _) = timed(client.lock("other").wait(LONG).acquire()).await;
    unavailable(result);
    tokio::time::sleep(SILENCE).await;
    server.resume();
    eventually("what was asked for late is undone", async || {
        server.keys("lock:other").await.is_empty()
    })
    .await;
    held.extend(Duration::from_secs(12)).await.unwrap();
    assert!(held.is_held());
}
