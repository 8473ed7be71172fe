//! Connections that are quiet for long, and firewalls that forget them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{Proxy, RedisServer, eventually, server_is_at_least};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A try has so long for both of its commands, also on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);

async fn client(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url);
    let builder = builder.command_timeout(COMMAND_TIMEOUT);
    builder
        .connect_timeout(COMMAND_TIMEOUT)
        .connect()
        .await
        .unwrap()
}

/// It forgets its connections, and silently swallows what still comes over them.
struct Firewall {
    addr: SocketAddr,
    forgotten: Arc<watch::Sender<u64>>,
    /// How many new connections it refuses.
    refuses: Arc<AtomicUsize>,
}

impl Firewall {
    async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let forgotten = Arc::new(watch::Sender::new(0));
        let (times, refuses) = (Arc::clone(&forgotten), Arc::new(AtomicUsize::new(0)));
        let refused = Arc::clone(&refuses);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let fewer = |left: usize| left.checked_sub(1);
                if refused.fetch_update(SeqCst, SeqCst, fewer).is_ok() {
                    continue;
                }
                let server = TcpStream::connect(target).await.unwrap();
                let made = *times.borrow();
                let (client_reads, client_writes) = client.into_split();
                let (server_reads, server_writes) = server.into_split();
                for (mut from, mut to) in
                    [(client_reads, server_writes), (server_reads, client_writes)]
                {
                    let times = times.subscribe();
                    tokio::spawn(async move {
                        let mut buffer = [0; 4096];
                        loop {
                            let bytes = from.read(&mut buffer).await.unwrap_or(0);
                            if *times.borrow() != made {
                                std::future::pending::<()>().await;
                            }
                            if bytes == 0 || to.write_all(&buffer[..bytes]).await.is_err() {
                                return;
                            }
                        }
                    });
                }
            }
        });
        Self {
            addr,
            forgotten,
            refuses,
        }
    }

    fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }

    fn forget(&self) {
        self.forgotten.send_modify(|times| *times += 1);
    }
}

async fn job(client: LockClient) {
    let once = client.lock("job").wait(Duration::ZERO);
    once.run(async {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_over_a_connection_that_was_forgotten_is_repeated_over_a_new_one() {
    let server = RedisServer::start().await;
    let firewall = Firewall::start(server.addr()).await;
    let client = client(&firewall.url()).await;
    for _ in 0..4 {
        for _ in 0..3 {
            tokio::spawn(job(client.clone())).await.unwrap();
        }
        firewall.forget();
    }
    eventually("nothing is left", async || {
        server.keys("lock:*").await.is_empty()
    })
    .await;
}

/// That no other could be made does not speak for the one that is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_forgotten_is_doubted_again_if_no_other_could_be_made() {
    let server = RedisServer::start().await;
    let firewall = Firewall::start(server.addr()).await;
    let client = client(&firewall.url()).await;
    client.lock("first").run(async {}).await.unwrap();
    firewall.refuses.store(1, SeqCst);
    firewall.forget();
    // It may be too early for this one to find another connection.
    _ = client.lock("second").wait(Duration::ZERO).acquire().await;
    assert_eq!(firewall.refuses.load(SeqCst), 0);
    tokio::spawn(job(client)).await.unwrap();
}

#[tokio::test]
async fn a_fair_try_a_permit_and_a_waiter_find_the_new_connection_as_well() {
    let server = RedisServer::start().await;
    let firewall = Firewall::start(server.addr()).await;
    let client = client(&firewall.url()).await;
    firewall.forget();
    let fair = client.lock("a").fair().try_acquire().await;
    assert!(fair.unwrap().is_some());
    firewall.forget();
    let permit = client.semaphore("b", 2).permit().try_acquire().await;
    assert!(permit.unwrap().is_some());
    firewall.forget();
    let waited = client.lock("c").wait(2 * COMMAND_TIMEOUT).acquire();
    assert!(waited.await.unwrap().is_held());
}

#[tokio::test]
async fn a_slow_answer_is_waited_for_and_its_connection_kept() {
    // Each new connection tries its rights, until Redis 7 can be asked for them.
    if !server_is_at_least(7) {
        return;
    }
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = client(&proxy.url()).await;
    proxy.delay_replies(COMMAND_TIMEOUT / 3);
    let slow = client.lock("k").try_acquire().await.unwrap();
    assert!(slow.is_some());
    proxy.delay_replies(Duration::ZERO);
    eventually("the other connection is given up", async || {
        proxy.open_connections() == 1
    })
    .await;
    let health = client.health().await.unwrap();
    assert_eq!(health.servers[0].reconnects, 0);
    assert_eq!(proxy.requests_named("EVALSHA"), 0, "repeated");
}

/// The timers of this process's sockets to a port: which one runs, and when it ends, in 1/100 s.
#[cfg(target_os = "linux")]
fn timers(port: u16) -> Vec<(u8, u64)> {
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    let read = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let is_there = words.next()?.ends_with(&remote) && words.next()? == "01";
        let (timer, ends) = words.nth(1)?.split_once(':')?;
        let timer = u8::from_str_radix(timer, 16).ok()?;
        let ends = u64::from_str_radix(ends, 16).ok()?;
        is_there.then_some((timer, ends))
    };
    table.lines().filter_map(read).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_quiet_connection_is_kept_alive() {
    const KEEPALIVE: u8 = 2;
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    for _ in 0..2 {
        tokio::spawn(job(client.clone())).await.unwrap();
    }
    eventually("the connection is quiet and watched", async || {
        let timers = timers(server.port());
        let watched = |(timer, ends): &(u8, u64)| *timer == KEEPALIVE && *ends <= 30 * 100;
        timers.len() == 1 && timers.iter().all(watched)
    })
    .await;
}
