//! A network that fails on command.

mod connection;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// A TCP proxy in front of a Redis server, with a thread of its own: it works on while a test
/// blocks its runtime, and its delays are real also where tokio's clock is paused.
///
/// A fault is in force when the method that asks for it returns: from then on no byte passes
/// that should not. Everything ends when the proxy is dropped.
///
/// # Examples
///
/// ```no_run
/// # async fn example() {
/// use lock_tests::{Proxy, RedisServer};
///
/// let server = RedisServer::start().await;
/// let proxy = Proxy::start(server.addr()).await;
/// // Connect the code under test to `proxy.url()`. The lock will be taken, and nobody is told:
/// proxy.cut_after_next("SET");
/// # }
/// ```
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    network: Arc<Network>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port of the loopback interface and passes connections on to `target`.
    pub async fn start(target: SocketAddr) -> Self {
        let network = Arc::new(Network(watch::Sender::new(State::default())));
        let (end, ended) = oneshot::channel();
        let (tell_addr, addr) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("proxy".to_owned())
            .spawn({
                let network = Arc::clone(&network);
                move || run(target, network, tell_addr, ended)
            })
            .expect("a thread can be started");
        Self {
            addr: addr.await.expect("the proxy can listen"),
            network,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// Where the proxy listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `redis://…` without a password; see [`RedisServer::url_at`](crate::RedisServer::url_at).
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }

    /// Every byte arrives this much later, in both directions: a round trip costs twice that.
    /// Zero to end it. Bytes that are under way already keep the delay they were sent with.
    pub fn delay(&self, delay: Duration) {
        self.network.change(|state| {
            state.delay_requests = delay;
            state.delay_replies = delay;
        });
    }

    /// Requests arrive at once, replies this much later: the server has done what the client
    /// still waits for.
    pub fn delay_replies(&self, delay: Duration) {
        self.network.change(|state| {
            state.delay_requests = Duration::ZERO;
            state.delay_replies = delay;
        });
    }

    /// No byte passes in either direction, new connections included, and none is lost. All
    /// connections stay open; a connection that one side closes stays open on the other.
    pub fn freeze(&self) {
        self.network.change(|state| state.frozen = true);
    }

    /// Ends [`freeze`](Self::freeze): everything held back passes.
    pub fn thaw(&self) {
        self.network.change(|state| state.frozen = false);
    }

    /// Whether what the server sends is lost, while requests arrive.
    pub fn drop_replies(&self, drop: bool) {
        self.network.change(|state| state.drop_replies = drop);
    }

    /// Closes all current connections on both sides. New ones are accepted.
    pub fn cut(&self) {
        self.network.change(|state| state.open.clear());
    }

    /// Whether new connections are closed as soon as they are made. Those that exist stay.
    pub fn refuse(&self, refuse: bool) {
        self.network.change(|state| state.refuse = refuse);
    }

    /// Passes the next request of this name on (`"SET"`, `"EVALSHA"`, …) and then closes its
    /// connection: the server carries it out, and the client never learns. Once; what the client
    /// sent after that request is lost.
    pub fn cut_after_next(&self, command: &str) {
        self.arm(Some(command));
    }

    /// [`cut_after_next`](Self::cut_after_next), whatever the request is.
    pub fn cut_after_next_request(&self) {
        self.arm(None);
    }

    fn arm(&self, command: Option<&str>) {
        let cut_after = CutAfter(command.map(str::to_uppercase));
        self.network
            .change(|state| state.cut_after = Some(cut_after));
    }

    /// How many connections have been accepted, the refused ones not counted.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.network.0.borrow().connections
    }

    /// How many connections are open.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.network.0.borrow().open.len()
    }

    /// How many requests have been passed on to the server in full.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.network.0.borrow().requests.values().sum()
    }

    /// How many requests of one name have been passed on, such as `"SET"`.
    #[must_use]
    pub fn requests_named(&self, command: &str) -> u64 {
        let state = self.network.0.borrow();
        let count = state.requests.get(&command.to_uppercase());
        count.copied().unwrap_or(0)
    }

    /// How many bytes have been passed on to the server.
    #[must_use]
    pub fn bytes_to_server(&self) -> u64 {
        self.network.0.borrow().bytes_to_server
    }

    /// How many bytes have been passed on to clients, the dropped ones not counted.
    #[must_use]
    pub fn bytes_to_client(&self) -> u64 {
        self.network.0.borrow().bytes_to_client
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has already said so.
            let _ = thread.join();
        }
    }
}

/// What the proxy does and has done. All connections look at it and wait for its changes.
///
/// Bytes are passed on under its lock ([`Network::change`]), so that no change can come between
/// looking whether a chunk may pass and passing it.
#[derive(Debug)]
struct Network(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    delay_requests: Duration,
    delay_replies: Duration,
    frozen: bool,
    drop_replies: bool,
    refuse: bool,
    cut_after: Option<CutAfter>,
    /// The connections that have not been cut and have not ended.
    open: BTreeSet<u64>,
    connections: u64,
    requests: BTreeMap<String, u64>,
    bytes_to_server: u64,
    bytes_to_client: u64,
}

/// After which request a connection is cut: one of this name, or any.
#[derive(Debug)]
struct CutAfter(Option<String>);

impl CutAfter {
    fn matches(&self, command: &str) -> bool {
        self.0.as_deref().is_none_or(|wanted| wanted == command)
    }
}

impl Network {
    /// Changes the state and lets every connection look at it again.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut result = None;
        self.0.send_modify(|state| result = Some(change(state)));
        result.expect("the change was made")
    }

    /// Changes what no connection waits for, such as a count, unless `change` says that
    /// connections must look again.
    fn change_quietly<T>(&self, change: impl FnOnce(&mut State) -> (T, bool)) -> T {
        let mut result = None;
        self.0.send_if_modified(|state| {
            let (value, look_again) = change(state);
            result = Some(value);
            look_again
        });
        result.expect("the change was made")
    }

    async fn wait_for(&self, condition: impl FnMut(&State) -> bool) {
        self.0
            .subscribe()
            .wait_for(condition)
            .await
            .expect("the sender lives as long as the network");
    }
}

fn run(
    target: SocketAddr,
    network: Arc<Network>,
    tell_addr: oneshot::Sender<SocketAddr>,
    ended: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port is free");
        let addr = listener.local_addr().expect("a listener has an address");
        tell_addr
            .send(addr)
            .expect("somebody waits for the address");
        tokio::select! {
            () = accept(&listener, target, &network) => {}
            // The proxy was dropped; with the runtime everything else goes.
            _ = ended => {}
        }
    });
}

async fn accept(listener: &TcpListener, target: SocketAddr, network: &Arc<Network>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        while connections.try_join_next().is_some() {}
        let admitted = network.change(|state| {
            if state.refuse {
                return None;
            }
            state.connections += 1;
            let id = state.connections;
            state.open.insert(id);
            Some(id)
        });
        let Some(id) = admitted else {
            continue;
        };
        let network = Arc::clone(network);
        connections.spawn(async move {
            // A server that is down closes the connection just made, as a load balancer would.
            if let Ok(server) = TcpStream::connect(target).await {
                connection::serve(client, server, id, &network).await;
            }
            network.change(|state| state.open.remove(&id));
        });
    }
}
