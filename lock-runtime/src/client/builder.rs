//! [`LockClientBuilder`]: settings, and then a connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "test-util")]
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::LockClient;
use super::checks::{Servers, diagnosis, refuse};
use crate::clock::Clock;
use crate::config::{
    DEFAULT_COMMAND_TIMEOUT, DEFAULT_CONNECT_TIMEOUT, DEFAULT_LEASE, DEFAULT_NAMESPACE,
    DEFAULT_WAIT, Defaults, FAR, LOCAL_HANDOFFS, LOCAL_TURN, Replicas, Timeouts, check_lease,
};
use crate::engine::line::Lines;
use crate::engine::{Engine, reaper, thread};
use crate::error::{LockError, StoreError, StoreErrorKind};
#[cfg(feature = "test-util")]
use crate::pause::Pause;
use crate::store::memory::MemoryStore;
use crate::store::quorum::QuorumStore;
use crate::store::redis::RedisStore;
use crate::store::redis::names::Namespace;
use crate::store::{ClientId, Listener, Store, Wish};

/// The settings of a [`LockClient`].
///
/// # Default
/// - no URL: it must be given
/// - namespace `lock`
/// - lease 30 s, wait 10 s
/// - command timeout 500 ms, connect timeout 1 s
/// - replicas: none have to confirm a hold
/// - strict checks: no
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// # use lock_runtime::LockClient;
/// let client = LockClient::builder()
///     .url("memory:") // in a service: redis://…
///     .namespace("shop")
///     .lease(Duration::from_secs(20))
///     .wait(Duration::from_secs(5))
///     .connect()
///     .await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `connect` or `connect_lazy`"]
pub struct LockClientBuilder {
    url: Option<String>,
    namespace: String,
    defaults: Defaults,
    connect_timeout: Duration,
    replicas: Option<Replicas>,
    strict_checks: bool,
    #[cfg(feature = "test-util")]
    simulated: Option<Simulated>,
    #[cfg(feature = "test-util")]
    store: Option<Arc<StoreFactory>>,
}

/// What a simulation decides for a client.
#[cfg(feature = "test-util")]
#[derive(Clone)]
struct Simulated {
    runtime: Handle,
    id: ClientId,
    pause: Pause,
}

/// Makes a test's own store.
#[cfg(feature = "test-util")]
type StoreFactory =
    dyn Fn(&str, ClientId, &Arc<dyn Listener>, Clock) -> Arc<dyn Store> + Send + Sync;

impl Default for LockClientBuilder {
    fn default() -> Self {
        let defaults = Defaults {
            lease: DEFAULT_LEASE,
            wait: DEFAULT_WAIT,
            command_timeout: DEFAULT_COMMAND_TIMEOUT,
            local_handoffs: LOCAL_HANDOFFS,
            local_turn: LOCAL_TURN,
        };
        Self {
            url: None,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            defaults,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            replicas: None,
            strict_checks: false,
            #[cfg(feature = "test-util")]
            simulated: None,
            #[cfg(feature = "test-util")]
            store: None,
        }
    }
}

impl LockClientBuilder {
    /// Where the store is. Read at `connect`.
    /// - `redis://[user:password@]host[:port][/db]`: one server
    /// - `redis+unix:///path/to/socket`: the same over a Unix socket
    /// - `redis-sentinel://[user:password@]host[:port],host[:port],…/master[/db]`: the master of that name, by the word of
    ///   its sentinels (port 26379), whichever server that is at the time. User and password are those of the master;
    ///   those of the sentinels are given as `?sentinel_user=…&sentinel_password=…`
    /// - `redis-cluster://[user:password@]host[:port],host[:port],…`: a Redis Cluster (7.0 or later), of which these are
    ///   some nodes; the others are found by themselves
    /// - `redis-quorum://[user:password@]host[:port],host[:port],…[/db][?rejoin_after=60s]`: a majority of independent servers, three
    ///   or five. A server that was restarted does not count for `rejoin_after` (default 60 s), which is also the longest
    ///   lease; `0s` is for servers that write every change to disk
    /// - `rediss://…`, `rediss-sentinel://…`, `rediss-cluster://…`, `rediss-quorum://…`: the same over TLS, by the feature `tokio-rustls-comp`;
    ///   for sentinels, too
    /// - `memory:`: a store of its own in this process
    ///
    /// Reserved characters in a user or password are written as `%XX`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// What every key and channel of this client begins with, so that one ACL rule `~shop:* &shop:*` covers it. No
    /// `:` `{` `}` `%`. The empty namespace shares names with existing `SET NX` code. Default: `lock`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The lease of requests that give none, 10 ms to 24 h; it is renewed at a third. Default: 30 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.defaults.lease = lease;
        self
    }

    /// The wait of requests that give none. Default: 10 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.defaults.wait = wait.min(FAR);
        self
    }

    /// How often, and for how long, an exclusive lock that is not [`fair`](crate::Lock::fair) passes from one task of this
    /// process to the next without the store, before other processes that wait have their turn. More lets a hot key move
    /// faster, and the others wait longer. A task that does not take what was passed on to it within 1 to 2 s, because
    /// nobody polls it, is passed over. Default: 64 times and 10 ms. With `0`, every hand-over goes through the store, in the
    /// order of its queue.
    pub fn local_turn(mut self, handoffs: u32, time: Duration) -> Self {
        self.defaults.local_handoffs = handoffs;
        self.defaults.local_turn = time.min(FAR);
        self
    }

    /// How long one command to the store may take. Default: 500 ms.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.defaults.command_timeout = timeout.min(FAR);
        self
    }

    /// How long connecting, with its handshake, may take. Default: 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout.min(FAR);
        self
    }

    /// Has so many replicas confirm each hold, within `timeout`: every acquire, every lock that is handed over, and every
    /// renewal, of whatever kind. In the URL: `?replicas=1&replicas_timeout=100ms` (without the timeout: 100 ms). Default:
    /// none.
    ///
    /// A hold that too few confirm is not granted: it is undone, tried again within the request's wait, and then told as
    /// [`Unavailable`](LockError::Unavailable) of the kind [`NotReplicated`](StoreErrorKind::NotReplicated), with how many
    /// did. A renewal that too few confirm counts as unanswered: it is tried again, and at its old deadline the hold is
    /// lost. So a master that was cut off from its replicas grants nothing, and the holds there end.
    ///
    /// What it does not give: Redis' replication stays asynchronous, and a failover need not choose a replica that
    /// confirmed. With one master and one replica it has no other; with more, ask for all of them, or for as many as
    /// leave none to be chosen that lacks the hold. Fencing tokens hold in any case. Rate limiters, latches, and what a
    /// [`release`](crate::Guard::release) gives back are not confirmed.
    ///
    /// It costs a second connection, and one more round trip for each acquire, which includes that to the replicas;
    /// acquires and renewals at the same time share one. How many replicas there are is not known beforehand: more than
    /// there are never confirm. Not for `memory:`, which has none.
    ///
    /// # Errors
    /// At [`connect`](Self::connect), [`LockError::Config`] for no replicas, a zero timeout, or one of more than half of the
    /// [command timeout](Self::command_timeout).
    pub fn replicas(mut self, count: u32, timeout: Duration) -> Self {
        self.replicas = Some(Replicas { count, timeout });
        self
    }

    /// Whether [`connect`](Self::connect) refuses a store that is not set up for locks, with a
    /// [`Config`](LockError::Config) that names every [`Finding`](crate::Finding), unknown ones included: eviction, no
    /// persistence, no `min-replicas-to-write`, clocks that differ, a server of a quorum that does not answer. Default: no; the
    /// same is then logged once as warnings by `tracing` (unknown ones as information), in the background and beside the first
    /// locks.
    ///
    /// # Errors
    /// `connect_lazy` returns before anything can be known: [`LockError::Config`].
    pub fn strict_checks(mut self, strict: bool) -> Self {
        self.strict_checks = strict;
        self
    }

    /// Runs the engine on this runtime, whose time is paused, instead of a thread of its own. Nothing in there is left to
    /// chance: the client's id is given, too. `pause` stops its tasks.
    #[cfg(feature = "test-util")]
    pub fn simulated(mut self, runtime: Handle, id: u128, pause: Pause) -> Self {
        let id = ClientId(id);
        self.simulated = Some(Simulated { runtime, id, pause });
        self
    }

    /// Uses a test's own store instead of the URL's.
    #[cfg(feature = "test-util")]
    pub fn store<F>(mut self, store: F) -> Self
    where
        F: Fn(&str, ClientId, &Arc<dyn Listener>, Clock) -> Arc<dyn Store> + Send + Sync + 'static,
    {
        self.store = Some(Arc::new(store));
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// [`LockError::Config`] for a bad URL, namespace or setting, and for a store that is not what the URL says (no
    /// sentinel, no cluster, no master of that name); [`LockError::Unavailable`] if the store can't be reached within the
    /// connect timeout, or refuses the user or the password.
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the connection.
    pub async fn connect(self) -> Result<LockClient, LockError> {
        let (connect_timeout, strict) = (self.connect_timeout, self.strict_checks);
        let (client, redis) = self.start()?;
        if let Some(redis) = redis {
            let by = client.engine().clock().now() + connect_timeout;
            let failed = |source: StoreError| match source.kind() {
                StoreErrorKind::Misconfigured => LockError::config(source.to_string()),
                _ => LockError::Unavailable { key: None, source },
            };
            redis.first_attempt(by).await.map_err(failed)?;
            if strict {
                let by = client.engine().clock().now() + connect_timeout;
                refuse(&redis.diagnose(by).await.map_err(failed)?)?;
            }
        }
        Ok(client)
    }

    /// Returns at once and connects in the background, for services that must start while the store is down.
    ///
    /// # Errors
    /// [`LockError::Config`] for a bad URL, namespace or setting.
    pub fn connect_lazy(self) -> Result<LockClient, LockError> {
        if self.strict_checks {
            return Err(LockError::config(
                "`strict_checks` refuses a store before the service starts, and `connect_lazy` does not wait for one: use `connect`",
            ));
        }
        self.start().map(|(client, _)| client)
    }

    fn check(&self) -> Result<Namespace, LockError> {
        check_lease("lease", self.defaults.lease)?;
        for (name, timeout) in [
            ("command_timeout", self.defaults.command_timeout),
            ("connect_timeout", self.connect_timeout),
        ] {
            if timeout.is_zero() {
                return Err(LockError::config(format!(
                    "`{name}` is zero; give the store some time, as 500 ms"
                )));
            }
        }
        if let Some(replicas) = self.replicas {
            replicas.check(self.defaults.command_timeout)?;
        }
        Namespace::new(&self.namespace)
    }

    fn start(self) -> Result<(LockClient, Option<Servers>), LockError> {
        let namespace = self.check()?;
        let id = self.id()?;
        let runtime = self.runtime()?;
        let clock = runtime.clock.clone();
        let lines = Arc::<Lines>::default();
        let listener: Arc<dyn Listener> = Arc::<Lines>::clone(&lines);
        let (store, redis) = self.open(namespace.clone(), id, &listener, clock.clone())?;
        let (engine, task) = Engine::new(id, clock, store, lines, self.defaults);
        runtime.run(task);
        if let Some(redis) = &redis {
            let (redis, timeouts) = (redis.clone(), self.timeouts());
            let clock = engine.clock().clone();
            let diagnosis = diagnosis(redis, clock.clone(), timeouts);
            clock.spawn(diagnosis);
        }
        Ok((LockClient::new(engine, namespace.as_str().into()), redis))
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.connect_timeout,
            command: self.defaults.command_timeout,
        }
    }

    fn id(&self) -> Result<ClientId, LockError> {
        #[cfg(feature = "test-util")]
        if let Some(simulated) = &self.simulated {
            return Ok(simulated.id);
        }
        client_id()
    }

    fn runtime(&self) -> Result<Runtime, LockError> {
        #[cfg(feature = "test-util")]
        if let Some(simulated) = &self.simulated {
            let clock = Clock::simulated(simulated.runtime.clone());
            return Ok(Runtime {
                clock: clock.pausable(Some(simulated.pause.clone())),
                work: None,
            });
        }
        let (handle, work) = thread::start().map_err(|error| {
            LockError::config(format!("the client's thread can't be started: {error}"))
        })?;
        Ok(Runtime {
            clock: Clock::new(handle),
            work: Some(work),
        })
    }

    fn open(
        &self,
        namespace: Namespace,
        id: ClientId,
        listener: &Arc<dyn Listener>,
        clock: Clock,
    ) -> Result<Opened, LockError> {
        #[cfg(feature = "test-util")]
        if let Some(store) = &self.store {
            return Ok((store(namespace.as_str(), id, listener, clock), None));
        }
        let Some(url) = &self.url else {
            return Err(LockError::config(
                "the client has no URL; add `.url(\"redis://…\")`, or use `LockClient::in_memory()`",
            ));
        };
        if url.starts_with("memory:") && (self.replicas.is_some() || url.contains("replicas=")) {
            return Err(LockError::config(
                "`replicas` asks for replicas, and `memory:` is a store of its own in this process, which has none",
            ));
        }
        if url.trim_end_matches('/') == "memory:" {
            return Ok((
                MemoryStore::new().connect(namespace.as_str(), id, listener, clock),
                None,
            ));
        }
        let quorum = QuorumStore::open(
            url,
            self.timeouts(),
            &namespace,
            id,
            Arc::downgrade(listener),
            clock.clone(),
            self.replicas,
        )?;
        if let Some(store) = quorum {
            if let Some(reason) = store.refuses(Wish::Lease(self.defaults.lease)) {
                return Err(LockError::config(reason));
            }
            let store = Arc::new(store);
            return Ok((
                Arc::<QuorumStore>::clone(&store),
                Some(Servers::Quorum(store)),
            ));
        }
        let store = RedisStore::open(
            url,
            self.timeouts(),
            namespace,
            id,
            Arc::downgrade(listener),
            clock,
            self.replicas,
        )?;
        let store = Arc::new(store);
        Ok((
            Arc::<RedisStore>::clone(&store),
            Some(Servers::Redis(store)),
        ))
    }
}

/// A store, and the same one as what `connect` waits for.
type Opened = (Arc<dyn Store>, Option<Servers>);

/// Where an engine's tasks run.
struct Runtime {
    clock: Clock,
    work: Option<oneshot::Sender<reaper::Task>>,
}

impl Runtime {
    fn run(self, task: reaper::Task) {
        match self.work {
            // A thread that is gone can't be told; then its store is gone, too.
            Some(work) => _ = work.send(task),
            None => self.clock.spawn(task.run()),
        }
    }
}

fn client_id() -> Result<ClientId, LockError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        LockError::config(format!(
            "the operating system gives no random numbers: {error}"
        ))
    })?;
    Ok(ClientId(u128::from_le_bytes(bytes)))
}

impl LockClient {
    /// A client of a store of its own in this process: for trying things out, and for tests.
    ///
    /// # Panics
    /// If the operating system gives no thread or no random numbers.
    #[must_use]
    #[expect(
        clippy::panic,
        reason = "as `std::thread::spawn`, which panics when there is no thread to be had"
    )]
    pub fn in_memory() -> Self {
        match Self::builder().url("memory:").connect_lazy() {
            Ok(client) => client,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Without the URL, which can hold a password.
impl fmt::Debug for LockClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockClientBuilder")
            .field("namespace", &self.namespace)
            .field("defaults", &self.defaults)
            .field("connect_timeout", &self.connect_timeout)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}
