//! [`LockClient`]: a service configures one, and takes its locks from it.

mod builder;
mod diagnosis;
mod first_connection;
mod global;
mod health;
mod holds;
mod inspection;
mod layouts;
mod view;
mod views;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lock_store::{LockKey, Namespace};

use self::layouts::Layouts;
use self::view::View;
use crate::api::{Latch, Lock, Rate, RateLimiter, RwLock, Semaphore};
use crate::config::Spec;
use crate::engine::Engine;
use crate::error::LockError;
use crate::observe::Stats;
use crate::one_or_more::OneOrMore;

pub use self::builder::LockClientBuilder;
pub(crate) use self::global::current;
pub use self::global::{init, shutdown};
pub use self::health::Health;
pub use self::holds::HeldLock;
pub use self::inspection::Inspection;

/// A connection to a lock store, shared by all its clones and [views](Self::namespaced).
///
/// A client owns one background thread. There its connection lives and its leases are renewed. So
/// code that blocks the service's own executor does not cost it its locks. When the last clone, the
/// last guard and the last pending undo are gone, so are the thread and the connection.
///
/// A program that ends right after its work calls [`shutdown`](Self::shutdown) first, or
/// [`lock_runtime::shutdown`](crate::shutdown) for the global client: a dropped guard is released
/// in the background, which the end of the process would cut off. Where nobody has called it, the
/// drop of the last clone and guard waits for what is under way, for one command timeout (0.5 s) at
/// most. Inside a tokio runtime it does not block: there the end of the thread waits. On Linux with
/// glibc, and on macOS, that covers a `main` that returns and `std::process::exit`, for clients
/// that ended on that thread, or on a thread of a runtime that was dropped before. It never covers
/// a global client.
///
/// `fork()` leaves that thread behind: in the child process each call gives [`LockError::Config`].
/// Connect after the fork.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use lock_runtime::{LockClient, LockError, lock_key};
/// # async fn example(product: u64) -> Result<(), LockError> {
/// let client = LockClient::builder()
///     .url("redis://127.0.0.1/")
///     .namespace("shop")
///     .lease(Duration::from_secs(30))
///     .connect()
///     .await?;
/// let guard = client.lock(lock_key!("stock:<product>")).acquire().await?;
/// // read, decide, write
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LockClient {
    engine: Arc<Engine>,
    view: View,
    layouts: Arc<Layouts>,
}

impl LockClient {
    /// `settings` are those that it was built with.
    pub(crate) fn new(engine: Arc<Engine>, settings: LockClientBuilder) -> Self {
        Self {
            layouts: Arc::new(Layouts::new(settings, &engine)),
            engine,
            view: View::default(),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The key as the engine knows it, in the namespace of this view.
    pub(crate) fn key(&self, key: impl Into<LockKey>) -> LockKey {
        self.view.key(key.into(), self.engine.namespace())
    }

    /// A request's options over the defaults of this view.
    pub(crate) fn spec(&self, spec: Spec) -> Spec {
        self.view.spec(spec)
    }

    /// A builder with the default settings.
    pub fn builder() -> LockClientBuilder {
        LockClientBuilder::default()
    }

    /// A request for a lock; see [`Lock`] for its options.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("stock:42").acquire().await?;
    /// assert_eq!(guard.key().as_str(), "stock:42");
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, key: impl Into<LockKey>) -> Lock {
        let key = OneOrMore::One(self.key(key));
        Lock::new(&self.engine, key, self.spec(Spec::DEFAULT))
    }

    /// A request for several locks at once: all or none. The order in which they are listed does
    /// not matter: there is no deadlock.
    ///
    /// If all are free, one command takes them. Otherwise the request waits for one after the
    /// other, in the order of their keys, and holds those that it has. If the wait ends first, they
    /// are given back. They are renewed together, lost together (when one is gone, all are) and
    /// released together. A key that is listed twice is locked once.
    /// [`Guard::fencing_tokens`](crate::Guard::fencing_tokens) has a token for each.
    ///
    /// Inside a hold, a request for several keys shares it if the hold has all of them. If it has
    /// only some, the request is [`LockError::WouldDeadlock`]. A request without any key is
    /// [`LockError::Config`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.multi_lock(["account:7", "account:3"]).acquire().await?;
    /// assert!(client.lock("account:3").try_acquire().await?.is_none());
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_lock<K: Into<LockKey>>(&self, keys: impl IntoIterator<Item = K>) -> Lock {
        let keys = keys.into_iter().map(|key| self.key(key));
        let keys = OneOrMore::Several(keys.collect());
        Lock::new(&self.engine, keys, self.spec(Spec::DEFAULT))
    }

    /// A read-write lock; see [`RwLock`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// let client = lock_runtime::LockClient::in_memory();
    /// let one = client.rw_lock("prices").read().await?;
    /// let two = client.rw_lock("prices").read().await?;
    /// assert!(client.rw_lock("prices").write().try_acquire().await?.is_none());
    /// # drop((one, two));
    /// # Ok(())
    /// # }
    /// ```
    pub fn rw_lock(&self, key: impl Into<LockKey>) -> RwLock {
        RwLock::new(
            Arc::clone(&self.engine),
            self.key(key),
            self.spec(Spec::DEFAULT),
        )
    }

    /// A semaphore with this many permits (1 to 2³¹ − 2); see [`Semaphore`].
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// let client = lock_runtime::LockClient::in_memory();
    /// let downloads = client.semaphore("downloads", 5);
    /// let three = downloads.permits(3).await?;
    /// assert!(downloads.permits(3).try_acquire().await?.is_none());
    /// # drop(three);
    /// # Ok(())
    /// # }
    /// ```
    pub fn semaphore(&self, key: impl Into<LockKey>, permits: u32) -> Semaphore {
        let spec = self.spec(Spec::DEFAULT);
        Semaphore::new(Arc::clone(&self.engine), self.key(key), permits, spec)
    }

    /// A count-down latch: it opens when it was counted down to zero; see [`Latch`].
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let ready = client.latch("ready:42");
    /// ready.set(1).await?;
    /// assert_eq!(ready.count_down().await?, 0);
    /// ready.wait(Duration::from_secs(3)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn latch(&self, key: impl Into<LockKey>) -> Latch {
        Latch::new(Arc::clone(&self.engine), self.key(key))
    }

    /// A rate limiter for a key, over all processes. Nothing happens before it is asked.
    ///
    /// # Examples
    /// ```
    /// # use lock_runtime::{LockClient, LockError, Rate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LockError> {
    /// # let client = LockClient::in_memory();
    /// client.rate_limiter("mail", Rate::per_second(100).burst(20)).acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn rate_limiter(&self, key: impl Into<LockKey>, rate: Rate) -> RateLimiter {
        RateLimiter::new(Arc::clone(&self.engine), self.key(key), rate)
    }

    /// Asks the store for a sign of life, counts what this client does, and says what about the
    /// servers endangers locks.
    ///
    /// If the user may not ask (`INFO`, `TIME`), that is a
    /// [`Finding::Unknown`](crate::Finding::Unknown), which names the missing right. A master of a
    /// Redis Cluster, or a server of a quorum, of ZooKeeper or etcd, that does not answer is listed
    /// beside the others ([`Finding::NoAnswer`](crate::Finding::NoAnswer)). It costs each server a
    /// handful of commands: for a health page, not for every request.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] if no server answers within the command timeout, or no majority
    /// of a quorum; [`LockError::Shutdown`].
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").acquire().await?;
    /// assert_eq!(client.health().await?.held, 1);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn health(&self) -> Result<Health, LockError> {
        let (round_trip, mut servers) = self.engine.diagnose().await?;
        let in_process = self.layouts.are_in_process();
        servers.extend(in_process.then(diagnosis::of_this_process));
        let stats = self.stats();
        Ok(Health {
            round_trip,
            held: stats.held,
            waiting: stats.waiting,
            lost: stats.lost,
            release_failures: stats.release_failures,
            servers,
        })
    }

    /// Creates what the client's store needs in its server before the first lock can be taken:
    /// tables and functions in PostgreSQL, and in ZooKeeper the node of the URL's path and that of
    /// the namespace. On every other engine it does nothing. Repeating it changes nothing, and
    /// several processes may call it at once.
    ///
    /// The URL must name a user that may create them; the services themselves need less. A client
    /// for this can't be [connected](LockClientBuilder::connect) before: use
    /// [`connect_lazy`](LockClientBuilder::connect_lazy).
    ///
    /// # Errors
    /// [`LockError::Config`] for a user without the right to make them;
    /// [`LockError::Unavailable`] if the server does not answer, and in ZooKeeper also for such a
    /// user.
    ///
    /// # Cancel safety
    /// All of it is done, or nothing. In ZooKeeper, some of the nodes may be there: call it again.
    ///
    /// # Examples
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let url = "postgres://owner@db.internal/shop";
    /// let client = lock_runtime::LockClient::builder().url(url).connect_lazy()?;
    /// client.migrate().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate(&self) -> Result<(), LockError> {
        self.engine.migrate().await
    }

    /// What this client does now, and what it has done: counters and states. Waits for nobody, so
    /// it works while the store is down. On PostgreSQL it opens a connection in the background if
    /// there is none.
    ///
    /// It looks at each request that waits.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").acquire().await?;
    /// let stats = client.stats();
    /// assert!(stats.connected);
    /// assert_eq!((stats.held, stats.granted(), stats.lost), (1, 1, 0));
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Resolves when a [`shutdown`](Self::shutdown) of this client has begun; at once, if it has
    /// already. A body that runs for long awaits this beside its work. So it ends in good order,
    /// and the shutdown does not wait for its whole timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let consumer = client.lock("consumer").run(async {
    ///     loop {
    ///         tokio::select! {
    ///             () = client.closing() => break "what was begun is done, and nothing new",
    ///             () = tokio::time::sleep(Duration::from_millis(10)) => {} // one message
    ///         }
    ///     }
    /// });
    /// let (consumed, ()) = tokio::join!(consumer, client.shutdown(Duration::from_secs(60)));
    /// assert!(consumed.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn closing(&self) {
        self.engine.closing().await;
    }

    /// Ends this client, all its clones and all their views.
    ///
    /// New and waiting requests get [`LockError::Shutdown`] at once. Bodies that hold a lock have
    /// until the timeout. Then their guards are lost and released. The releases are waited for, for
    /// at most two command timeouts.
    ///
    /// Called inside a body or a [`Guard::scope`](crate::Guard::scope), it does not wait for the
    /// holds of its own call chain, and they are not lost. Each is released when its body returns
    /// or its guard is released, and the last of them ends the client's connections. A shutdown
    /// that is called outside of them waits for them as for others.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the client closed to new requests, and bodies as they are.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let client = lock_runtime::LockClient::in_memory();
    /// client.shutdown(Duration::from_secs(5)).await;
    /// assert!(matches!(client.lock("a").acquire().await, Err(lock_runtime::LockError::Shutdown)));
    /// # }
    /// ```
    pub async fn shutdown(&self, timeout: Duration) {
        let engines = self.layouts.close();
        let mut ends: Vec<_> = engines
            .iter()
            .map(|engine| Box::pin(engine.shutdown(timeout)))
            .collect();
        poll_fn(|cx| {
            ends.retain_mut(|end| end.as_mut().poll(cx).is_pending());
            match ends.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

impl fmt::Debug for LockClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self
            .view
            .namespace(self.engine.namespace())
            .map(Namespace::as_str);
        f.debug_struct("LockClient")
            .field("id", &self.engine.id())
            .field("namespace", &namespace.unwrap_or("(can't be used)"))
            .field("held", &self.engine.held())
            .finish_non_exhaustive()
    }
}
