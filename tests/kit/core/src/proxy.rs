//! A network that fails on command.

mod connection;
mod network;
mod protocol;

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::task::Context;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use self::network::{Admitted, CutAfter, Network};
use self::protocol::Protocol;

/// A TCP proxy in front of a server. It has its own thread: it works while a test blocks its
/// runtime, and its delays are real even if tokio's clock is paused.
///
/// A fault is in force when the method that requests it returns: from then on no byte passes
/// that should not. Everything ends when the proxy is dropped.
///
/// # Examples
///
/// ```no_run
/// # async fn example() {
/// use lock_testkit_core::{Proxy, RedisServer};
///
/// let server = RedisServer::start().await;
/// let proxy = Proxy::start(server.addr()).await;
/// // Connect the code under test to `proxy.url()`. The server takes the lock; its reply is lost:
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
    /// Listens on a free port of the loopback interface, and passes connections on to `target`, a
    /// Redis server.
    pub async fn start(target: SocketAddr) -> Self {
        Self::start_for(target, Protocol::Redis).await
    }

    /// The same in front of a PostgreSQL server. Its requests are named `SYNC` and `QUERY`.
    pub async fn start_postgres(target: SocketAddr) -> Self {
        Self::start_for(target, Protocol::Postgres).await
    }

    /// The same in front of a ZooKeeper server. Its requests are named `CREATE`, `DELETE`,
    /// `CHILDREN`, `SYNC`, `MULTI`, `EXISTS`, `DATA` and `OTHER`, and `BEAT` for a transaction
    /// without parts.
    pub async fn start_zookeeper(target: SocketAddr) -> Self {
        Self::start_for(target, Protocol::ZooKeeper).await
    }

    /// The same in front of a server whose requests are not read.
    pub async fn start_unread(target: SocketAddr) -> Self {
        Self::start_for(target, Protocol::Other).await
    }

    async fn start_for(target: SocketAddr, protocol: Protocol) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let addr = listener.local_addr().expect("a listener has an address");
        let (network, connections) = Network::new(listener, protocol);
        let (end, ended) = oneshot::channel();
        let (tell_ready, ready) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("proxy".to_owned())
            .spawn({
                let network = Arc::clone(&network);
                move || run(target, &network, connections, tell_ready, ended)
            })
            .expect("a thread can be started");
        ready.await.expect("the proxy's thread gets to work");
        Self {
            addr,
            network,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// The address on which the proxy listens.
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
    /// Zero ends the delay. Bytes already under way keep the delay that they were sent with.
    pub fn delay(&self, delay: Duration) {
        self.network.change(|state| {
            state.delay_requests = delay;
            state.delay_replies = delay;
        });
    }

    /// Requests arrive at once, and replies this much later: the server has done what the client
    /// still waits for.
    pub fn delay_replies(&self, delay: Duration) {
        self.network.change(|state| {
            state.delay_requests = Duration::ZERO;
            state.delay_replies = delay;
        });
    }

    /// No byte passes in either direction, and none is lost. This includes new connections. All
    /// connections stay open; if one side closes a connection, it stays open on the other.
    pub fn freeze(&self) {
        self.network.change(|state| state.frozen = true);
    }

    /// Ends [`freeze`](Self::freeze): everything held back passes.
    pub fn thaw(&self) {
        self.network.change(|state| state.frozen = false);
    }

    /// Loses the server's replies, or stops doing so for connections that have lost none. Requests
    /// still arrive.
    pub fn drop_replies(&self, drop: bool) {
        self.network.change(|state| state.drop_replies = drop);
    }

    /// Closes all present connections on both sides. New ones are accepted.
    pub fn cut(&self) {
        self.network.change(|state| {
            self.network.admit_pending(state);
            state.open.clear();
        });
    }

    /// Closes new connections at once, or stops doing so. Existing connections stay.
    pub fn refuse(&self, refuse: bool) {
        self.network.change(|state| {
            self.network.admit_pending(state);
            state.refuse = refuse;
        });
    }

    /// Forwards the next request with this name (`"SET"`, `"EVALSHA"`, …), then closes its
    /// connection. So the server carries it out, and the client never learns of it. Happens once.
    /// What the client sent after that request is lost.
    pub fn cut_after_next(&self, command: &str) {
        self.arm(Some(command));
    }

    /// Like [`cut_after_next`](Self::cut_after_next), for any request.
    pub fn cut_after_next_request(&self) {
        self.arm(None);
    }

    fn arm(&self, command: Option<&str>) {
        let cut_after = CutAfter(command.map(str::to_uppercase));
        self.network
            .change(|state| state.cut_after = Some(cut_after));
    }

    /// Asks a server that does not listen again, for so long. Without this, new connections to it
    /// are closed at once.
    pub fn wait_for_server(&self, patience: Duration) {
        self.network.change(|state| state.patience = patience);
    }

    /// The number of accepted connections, without refused ones.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.network.change(|state| {
            self.network.admit_pending(state);
            state.connections
        })
    }

    /// The number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.network.change(|state| {
            self.network.admit_pending(state);
            state.open.len()
        })
    }

    /// The number of requests that were forwarded to the server completely.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.network.state.borrow().requests.values().sum()
    }

    /// The number of requests with one name that were forwarded, such as `"SET"`.
    #[must_use]
    pub fn requests_named(&self, command: &str) -> u64 {
        let state = self.network.state.borrow();
        let count = state.requests.get(&command.to_uppercase());
        count.copied().unwrap_or(0)
    }

    /// The number of bytes forwarded to the server.
    #[must_use]
    pub fn bytes_to_server(&self) -> u64 {
        self.network.state.borrow().bytes_to_server
    }

    /// The number of bytes forwarded to clients, without dropped ones.
    #[must_use]
    pub fn bytes_to_client(&self) -> u64 {
        self.network.state.borrow().bytes_to_client
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has already reported that.
            let _ = thread.join();
        }
    }
}

fn run(
    target: SocketAddr,
    network: &Arc<Network>,
    connections: mpsc::UnboundedReceiver<Admitted>,
    tell_ready: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let _ = tell_ready.send(());
        tokio::select! {
            () = accept(network) => {}
            () = serve(target, network, connections) => {}
            // The proxy was dropped. Everything else ends with the runtime.
            _ = ended => {}
        }
    });
}

async fn accept(network: &Network) {
    let listener = network.listener.try_clone().expect("can be cloned");
    let listener = tokio::net::TcpListener::from_std(listener).expect("can be waited for");
    loop {
        // Accept and admit in one step, so that no fault can come between them.
        let accept = |context: &mut Context<'_>| {
            network.change_quietly(|state| {
                let accepted = listener.poll_accept(context).map(|accepted| {
                    let client = accepted.and_then(|(client, _)| client.into_std());
                    network.admit(state, client);
                });
                (accepted, false)
            })
        };
        poll_fn(accept).await;
    }
}

async fn serve(
    target: SocketAddr,
    network: &Arc<Network>,
    mut admitted: mpsc::UnboundedReceiver<Admitted>,
) {
    let mut connections = JoinSet::new();
    while let Some((id, client)) = admitted.recv().await {
        while connections.try_join_next().is_some() {}
        let network = Arc::clone(network);
        connections.spawn(async move {
            // If the server is down, the new connection is closed, as a load balancer would do.
            let _ = connection::serve(client, target, id, &network).await;
            network.change(|state| state.open.remove(&id));
        });
    }
}
