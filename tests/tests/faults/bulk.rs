//! Thousands of requests at once, and a server that is slow with them. Slow is not dead.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError};
use lock_store::memory::MemoryStore;
use lock_store::{Instant as At, Store, StoreFuture};
use lock_testkit::store_decorator::{Interceptor, Reply, Request, decorated};
use lock_testkit::{RedisServer, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::client;

/// Stops a server for three quarters of the time.
struct Slowed {
    server: Arc<RedisServer>,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Slowed {
    fn start(server: &Arc<RedisServer>) -> Self {
        let (server, over) = (Arc::clone(server), Arc::<AtomicBool>::default());
        let (stopped, until) = (Arc::clone(&server), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                stopped.pause();
                std::thread::sleep(Duration::from_millis(15));
                stopped.resume();
                let_work(stopped.process_id());
            }
        });
        let thread = Some(thread);
        Self {
            server,
            over,
            thread,
        }
    }
}

/// Lets a process have 5 ms of a processor, which takes longer on a busy machine, or rest for as
/// long as it wants nothing.
fn let_work(process: u32) {
    let had = || {
        let had = std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        had.split(' ').next()?.parse::<u64>().ok()
    };
    let first = had();
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(5));
        if had() >= first.map(|first| first + 5_000_000) {
            return;
        }
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))), "{:?}", self.server);
    }
}

/// What a lock is granted with.
const OK: &[u8] = b"+OK\r\n";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Full,
    /// A short reply at a time. One to a client that connects is passed on whole: it is long, and a
    /// server that is slow with each request is not one that none can connect to.
    Slow,
    /// Nothing is passed on any more, of what has come neither.
    Silent,
}

/// Passes replies on.
async fn trickle(target: SocketAddr) -> (String, watch::Sender<Pace>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let paces = watch::Sender::new(Pace::Full);
    let pace = paces.clone();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(target).await.unwrap();
            let (mut client_reads, mut client_writes) = client.into_split();
            let (mut server_reads, mut server_writes) = server.into_split();
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut client_reads, &mut server_writes).await;
            });
            let mut pace = pace.subscribe();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                loop {
                    let bytes = server_reads.read(&mut buffer).await.unwrap_or(0);
                    if bytes == 0 {
                        return;
                    }
                    let is_slow = *pace.borrow() != Pace::Full && buffer.starts_with(OK);
                    for reply in buffer[..bytes].chunks(if is_slow { OK.len() } else { bytes }) {
                        let _ = pace.wait_for(|pace| *pace != Pace::Silent).await;
                        if client_writes.write_all(reply).await.is_err() {
                            return;
                        }
                        if is_slow {
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                }
            });
        }
    });
    (url, paces)
}

/// The last reply comes long after a command's usual time. The others came meanwhile.
#[tokio::test]
async fn a_server_that_answers_one_after_the_other_is_asked_once() {
    const LOCKS: usize = 16;
    let server = RedisServer::start().await;
    let (url, pace) = trickle(server.addr()).await;
    let client = client(&url).await;
    drop(client.lock("connects").acquire().await.unwrap());
    client.health().await.unwrap();
    let mut log = server.requests().await;
    pace.send_replace(Pace::Slow);
    let mut asking = JoinSet::new();
    for number in 0..LOCKS {
        let lock = client
            .lock(format!("k{number}"))
            .wait(Duration::from_secs(60));
        asking.spawn(async move { lock.acquire().await.unwrap() });
    }
    let guards = asking.join_all().await;
    let asked = log.take().await;
    let sets = asked.iter().filter(|request| request.command == "set");
    assert_eq!(sets.count(), LOCKS, "{asked:?}");
    let mut releasing = JoinSet::new();
    for guard in guards {
        releasing.spawn(async move { guard.release().await.unwrap() });
    }
    releasing.join_all().await;
}

/// A patient request waits for a slow server, and not for a dead one.
#[tokio::test]
async fn a_server_that_stops_answering_ends_a_long_wait() {
    for command_timeout in [50, 500] {
        let server = RedisServer::start().await;
        let (url, pace) = trickle(server.addr()).await;
        let builder = LockClient::builder().url(&url);
        let builder = builder.command_timeout(Duration::from_millis(command_timeout));
        let client = builder.connect().await.unwrap();
        drop(client.lock("connects").acquire().await.unwrap());
        // The checks at the start must not be under way.
        eventually("it answers", async || client.health().await.is_ok()).await;
        pace.send_replace(Pace::Slow);
        let mut asking = JoinSet::new();
        let ask = |asking: &mut JoinSet<_>, number| {
            let lock = client.lock(format!("k{number}"));
            let lock = lock.wait(Duration::from_secs(300));
            asking.spawn(async move { lock.acquire().await.map(drop) });
        };
        let slow_since = Instant::now();
        for number in 0..200 {
            ask(&mut asking, number);
        }
        // Some have been answered. Between two replies is more time than the shorter limit, so that
        // some may have ended before: on a busy machine, all of them.
        while let Some(ended) = asking.join_next().await {
            let Err(error) = ended.unwrap() else { break };
            if command_timeout < 100 {
                continue;
            }
            let (after, left) = (slow_since.elapsed(), asking.len());
            let servers = client.health().await.map(|health| health.servers);
            panic!("{error}, the first after {after:?}; {left} are left; {servers:?}");
        }
        pace.send_replace(Pace::Silent);
        server.pause();
        for number in 200..210 {
            ask(&mut asking, number);
        }
        let began = Instant::now();
        while let Some(ended) = asking.join_next().await {
            let dead = matches!(ended.unwrap(), Ok(()) | Err(LockError::Unavailable { .. }));
            assert!(dead, "what was not answered is unavailable");
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{:?}",
            began.elapsed()
        );
        server.resume();
    }
}

#[tokio::test]
async fn a_request_with_a_long_command_timeout_is_sent_to_a_slow_server_once() {
    let server = RedisServer::start().await;
    let (url, pace) = trickle(server.addr()).await;
    let builder = LockClient::builder().url(&url);
    let builder = builder.command_timeout(Duration::from_secs(2));
    let client = builder.connect().await.unwrap();
    drop(client.lock("k").fair().acquire().await.unwrap());
    client.health().await.unwrap();
    let mut log = server.requests().await;
    pace.send_replace(Pace::Slow);
    let mut others = JoinSet::new();
    for number in 0..70 {
        let lock = client.lock(format!("other{number}"));
        let lock = lock.wait(Duration::from_secs(300));
        others.spawn(async move { lock.acquire().await.unwrap() });
    }
    tokio::task::yield_now().await;
    let lock = client.lock("k").fair().wait(Duration::from_secs(300));
    let guard = lock.acquire().await.unwrap();
    let asked = log.take().await;
    let of_key = asked
        .iter()
        .filter(|request| request.text.contains("lock:k\""));
    assert_eq!(of_key.count(), 1, "{asked:?}");
    pace.send_replace(Pace::Full);
    drop((guard, others.join_all().await));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_that_wait_for_one_lock_of_a_slow_server_get_it() {
    wait_in_bulk(&[10_000], false).await;
}

/// Each stands in the store's queue, and each hand-over is a command.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_that_wait_for_a_fair_lock_of_a_slow_server_get_it_in_order() {
    wait_in_bulk(&[250; 4], true).await;
}

/// Each wave asks when all of the one before have their places.
async fn wait_in_bulk(waves: &[usize], fair: bool) {
    let server = Arc::new(RedisServer::start().await);
    let client = client(&server.url()).await;
    let held = client.lock("k").acquire().await.unwrap();
    let slowed = Slowed::start(&server);
    let (got, mut gets) = mpsc::unbounded_channel();
    let (mut waiting, mut asked) = (JoinSet::new(), 0);
    for (wave, many) in waves.iter().enumerate() {
        for _ in 0..*many {
            let lock = client.lock("k").wait(Duration::from_secs(300));
            let lock = if fair { lock.fair() } else { lock };
            let got = got.clone();
            waiting.spawn(async move {
                let guard = lock.acquire().await.unwrap();
                got.send(wave).unwrap();
                guard.release().await.unwrap();
            });
        }
        asked += many;
        if fair {
            eventually("all have their places", async || {
                // A question may take the server too long; a request may not.
                let found = client.inspect("k").await;
                found.is_ok_and(|found| found.waiting == asked)
            })
            .await;
        }
    }
    held.release().await.unwrap();
    waiting.join_all().await;
    drop(slowed);
    gets.close();
    let mut order = Vec::new();
    while let Some(wave) = gets.recv().await {
        order.push(wave);
    }
    assert_eq!(order.len(), asked);
    assert!(order.is_sorted(), "{order:?}");
    let health = client.health().await.unwrap();
    assert_eq!((health.lost, health.release_failures), (0, 0), "{health:?}");
    assert_eq!(health.servers[0].reconnects, 0, "{health:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_locks_of_a_slow_server_are_taken_and_released() {
    let server = Arc::new(RedisServer::start().await);
    let client = client(&server.url()).await;
    let slowed = Slowed::start(&server);
    let mut asking = JoinSet::new();
    for number in 0..3000 {
        let lock = client.lock(format!("k{number}"));
        let lock = lock.wait(Duration::from_secs(300));
        asking.spawn(async move {
            let guard = lock.acquire().await.unwrap();
            guard.release().await.unwrap();
        });
    }
    asking.join_all().await;
    drop(slowed);
    let health = client.health().await.unwrap();
    assert_eq!((health.lost, health.release_failures), (0, 0), "{health:?}");
    assert_eq!(health.servers[0].reconnects, 0, "{health:?}");
}

/// A store that carries out no release before it is told to, and counts those under way.
#[derive(Debug, Default)]
struct HeldBack {
    under_way: AtomicUsize,
    most: AtomicUsize,
    goes_on: watch::Sender<bool>,
}

impl Interceptor for HeldBack {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: At,
    ) -> StoreFuture<'s, Reply> {
        if !matches!(request, Request::Release(_)) {
            return request.send(store, by);
        }
        Box::pin(async move {
            let many = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(many, Ordering::SeqCst);
            let _ = self.goes_on.subscribe().wait_for(|goes_on| *goes_on).await;
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            request.send(store, by).await
        })
    }
}

/// What is under way takes memory, here and at the server.
#[tokio::test(flavor = "multi_thread")]
async fn of_thousands_of_guards_that_are_dropped_at_once_few_releases_are_under_way() {
    const GUARDS: usize = 5000;
    let held_back = Arc::<HeldBack>::default();
    let interceptor = Arc::clone(&held_back);
    let memory = MemoryStore::new();
    let builder = LockClient::builder()
        .store(move |context| Ok(decorated(memory.connect(context), Arc::clone(&interceptor))));
    let builder = builder.command_timeout(Duration::from_secs(60));
    let client = builder.connect().await.unwrap();
    let mut guards = Vec::new();
    for number in 0..GUARDS {
        guards.push(client.lock(format!("k{number}")).acquire().await.unwrap());
    }
    drop(guards);
    eventually("the first are under way", async || {
        held_back.under_way.load(Ordering::SeqCst) >= 64
    })
    .await;
    // It comes to the others only behind these.
    let forced = client.force_release(format!("k{}", GUARDS - 1)).await;
    assert!(forced.unwrap(), "the last is still held");
    held_back.goes_on.send_replace(true);
    eventually("all are done", async || client.stats().undoing == 0).await;
    let most = held_back.most.load(Ordering::SeqCst);
    assert!(most <= 512, "{most} were under way at once");
    assert!(client.lock("k0").try_acquire().await.unwrap().is_some());
}
