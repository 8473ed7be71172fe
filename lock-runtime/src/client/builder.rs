//! [`LockClientBuilder`]: settings, and then a connection.

mod access;
mod client_name;
mod connect;
mod engines;
mod servers;
mod url_settings;

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "__internals")]
use lock_store::ClientId;
#[cfg(feature = "__internals")]
use lock_store::SimulatedStop;
use lock_store::{Access, ConfigError, Layout, Store, StoreContext};
#[cfg(feature = "redis")]
use lock_store_redis::{AddressMap, Replicas};
#[cfg(feature = "test-util")]
use tokio::runtime::Handle;

use crate::config::{Defaults, FAR};
use crate::observe::Observer;

/// The settings of a [`LockClient`](crate::LockClient).
///
/// # Default
/// - no URL: it must be given
/// - layout: this library's own
/// - namespace `lock`, and in the layouts of other libraries but Curator's none
/// - name `host:pid`
/// - lease 30 s, wait 10 s
/// - command timeout 500 ms, connect timeout 1 s
/// - a wait of more than 30 s is logged, and a hold that is renewed for more than 5 min
/// - a lock passes inside the process 64 times and for 10 ms, while others wait
/// - unavailable after 2 s of silence, or when the wait is over where another server takes over:
///   under sentinels, in a cluster, on ZooKeeper, etcd, and PostgreSQL with several hosts
/// - no user, password or TLS but the URL's
/// - addresses that sentinels and cluster nodes announce are used as they are
/// - replicas: none have to confirm a hold
/// - strict checks: no
/// - messages are trusted: yes
/// - revocable: yes
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
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until `connect` or `connect_lazy`"]
pub struct LockClientBuilder {
    url: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    defaults: Defaults,
    connect_timeout: Option<Duration>,
    #[cfg(feature = "redis")]
    replicas: Option<Replicas>,
    layout: Option<Layout>,
    access: Access,
    #[cfg(feature = "redis")]
    addresses: Option<AddressMap>,
    strict_checks: bool,
    /// The caller's, instead of a thread of the client's own.
    #[cfg(feature = "test-util")]
    runtime: Option<Handle>,
    #[cfg(feature = "__internals")]
    simulated: Option<Simulated>,
    store: Option<Arc<StoreFactory>>,
    observers: Vec<Arc<dyn Observer>>,
    /// The caller wants the locks in this process.
    is_for_one_process: bool,
}

/// What a simulation decides for a client.
#[cfg(feature = "__internals")]
#[derive(Clone)]
struct Simulated {
    id: ClientId,
    pause: SimulatedStop,
}

/// Makes a store that this crate does not know.
type StoreFactory = dyn Fn(StoreContext) -> Result<Arc<dyn Store>, ConfigError> + Send + Sync;

impl LockClientBuilder {
    /// Each key and channel of this client begins with this, so one ACL rule `~shop:* &shop:*`
    /// covers it. Letters, digits, `-`, `_` and `.`: so namespaces never nest. At most 128 bytes of
    /// UTF-8. With any other, connecting is [`LockError::Config`](crate::LockError::Config). The
    /// empty namespace shares names with existing `SET NX` code. In the URL: `?namespace=shop`.
    /// Default: `lock`; in another [`layout`](Self::layout) than Curator's, none.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// This client's name: in the servers' lists of clients (`CLIENT LIST`), and in the
    /// [`Busy`](crate::LockError::Busy) errors of other clients. Visible ASCII without spaces, at
    /// most 128 bytes. In the URL: `?name=orders-7f9c`. Default: `host:pid`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The lease of requests that give none, 10 ms to 24 h. It is renewed each third. Default: 30
    /// s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.defaults.lease = lease;
        self
    }

    /// The wait of requests that give none. Default: 10 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.defaults.wait = wait.min(FAR);
        self
    }

    /// How often, and for how long, tasks of this process hand off an exclusive lock that is not
    /// [`fair`](crate::Lock::fair), without the store. Then other processes that wait have
    /// their turn. More makes a hot key faster, and the others wait longer. Default: 64 times and
    /// 10 ms. With `0`, each release hands the lock over in the store, in the order of its queue.
    ///
    /// A task that does not take the lock within 1 to 2 s, because nobody polls it, is skipped.
    pub fn local_tenure(mut self, handoffs: u32, time: Duration) -> Self {
        self.defaults.local_handoffs = handoffs;
        self.defaults.local_tenure = time.min(FAR);
        self
    }

    /// Whether a hold that is handed over begins with its message. If not, a message is only a
    /// hint: the waiting client asks the store and believes that reply. This costs one round trip
    /// for each hand-over. Default: `true`. It is always a hint in a Redis Cluster, where replicas
    /// confirm, on a quorum, PostgreSQL and SQLite, and in the layouts `redisson`, `shedlock` and
    /// `timestamp`.
    ///
    /// A message repeats a secret of the request that waits. A user who may only publish does not
    /// know it. A user who may also subscribe to the namespace's channels can read it there, and
    /// could publish it before its time. Set this to `false` if others may read the channels.
    pub fn trust_messages(mut self, trust: bool) -> Self {
        self.defaults.trusts_messages = trust;
        self
    }

    /// Whether other clients can take locks from this one by
    /// [`revoke`](crate::LockClient::revoke). With `false`, it goes on, and says so to who asks.
    /// [`force_release`](crate::LockClient::force_release) asks nobody, and works all the same.
    /// Default: `true`.
    pub fn revocable(mut self, revocable: bool) -> Self {
        self.defaults.revocable = revocable;
        self
    }

    /// How long one command to the store may take. Default: 500 ms. Redis may take longer to
    /// answer an acquire or a release, as long as it answers commands before it: an acquire within
    /// the request's wait (not with `replicas` or on a quorum), and a release for 10 s longer.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.defaults.command_timeout = timeout.min(FAR);
        self
    }

    /// A request that waits longer than this says so once in the log (`tracing`, as a warning),
    /// with the holder and how many requests of this process are before it. Not in
    /// [`lead`](crate::Lock::lead), which stands by for as long as it takes. Default: 30 s.
    pub fn warn_after(mut self, wait: Duration) -> Self {
        self.defaults.warn_after = wait.min(FAR);
        self
    }

    /// A hold that is renewed for longer than this says so once in the log (`tracing`, as a
    /// warning), at the renewal after it. Not those of [`lead`](crate::Lock::lead). Default: 5 min.
    /// [`Duration::MAX`] for holds that last for hours on purpose.
    pub fn warn_held_after(mut self, held: Duration) -> Self {
        self.defaults.warn_held_after = held.min(FAR);
        self
    }

    /// Tells this observer what the client does; see [`observe`](crate::observe). Called more than
    /// once, it tells each of them.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// How long the store may be silent until requests end with
    /// [`Unavailable`](crate::LockError::Unavailable), whatever is left of their wait.
    ///
    /// The time counts from the first command that was not answered after the last answer: of the
    /// one server, or, where another takes over, for each key while a request waits for it. A
    /// request that begins during a silence has the time of one command at least, and ends when
    /// the next command is left without an answer. A silence of the one server that no command has
    /// met for 5 s, or for 2 s and two command timeouts if that is more, counts as over. A request
    /// with `wait = "0s"` has the time of one command at most. Only requests end: holds are
    /// renewed, and undos are sent, as long as that may help.
    ///
    /// Default: 2 s for one server and for a quorum. Under sentinels, in a cluster, on ZooKeeper,
    /// etcd, and PostgreSQL with several hosts another server takes over after a while. There a
    /// request waits as long as its wait says, and with `wait = "forever"` as long as the client's.
    pub fn unavailable_after(mut self, silence: Duration) -> Self {
        self.defaults.unavailable_after = Some(silence.min(FAR));
        self
    }

    /// How long connecting, with its handshake, may take. Of a server whose name has several
    /// addresses, each has this time, and the next is tried before it is over. In the URL of a
    /// PostgreSQL server, in seconds: `?connect_timeout=5`. Default: 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout.min(FAR));
        self
    }

    /// Runs the engine on this runtime, whose time may be paused, instead of a thread of its own.
    #[cfg(feature = "test-util")]
    pub(crate) fn on_runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Runs the engine on this runtime, whose time is paused, instead of a thread of its own.
    /// Nothing in there is left to chance: the client's id is given, too. `pause` stops its tasks.
    #[cfg(feature = "__internals")]
    pub fn simulated(mut self, runtime: Handle, id: u128, pause: SimulatedStop) -> Self {
        let id = ClientId(id);
        self.simulated = Some(Simulated { id, pause });
        self.on_runtime(runtime)
    }

    /// For a client whose locks are meant to be in this process.
    pub(crate) fn for_one_process() -> Self {
        Self {
            url: Some("memory:".to_owned()),
            is_for_one_process: true,
            ..Self::default()
        }
    }

    /// Uses a store of the caller's own instead of the URL's: an engine that this library does not
    /// know, or one with something around it. `open` is called once for each client that is made.
    /// Settings that are for servers of Redis (user, password, TLS) are refused beside it.
    ///
    /// The contract is the crate `lock-store`, which says what of it is stable. Its embedded store
    /// is the specification.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockClient;
    /// use lock_store::memory::MemoryStore;
    ///
    /// // Two clients of one store in this process, as two replicas of a service have one Redis.
    /// let store = MemoryStore::new();
    /// let builder = LockClient::builder().store(move |context| Ok(store.connect(context)));
    /// let (one, two) = (builder.clone().connect().await?, builder.connect().await?);
    /// let guard = one.lock("job").acquire().await?;
    /// assert!(two.lock("job").try_acquire().await?.is_none());
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn store<F>(mut self, open: F) -> Self
    where
        F: Fn(StoreContext) -> Result<Arc<dyn Store>, ConfigError> + Send + Sync + 'static,
    {
        self.store = Some(Arc::new(open));
        self
    }
}

// Without the URL and what else can hold a password.
lock_store::show! {
    LockClientBuilder as it: namespace = it.namespace, name = it.name,
    defaults = it.defaults, connect_timeout = it.connect_timeout
}
