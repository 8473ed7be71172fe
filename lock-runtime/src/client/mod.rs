//! [`LockClient`]: a service configures one, and takes its locks from it.

mod builder;
mod diagnosis;
mod first_connection;
mod global;
mod health;
mod holds;
mod view;
mod views;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_store::{FoundHolder, LockKey, Namespace};

use self::view::View;
use crate::api::{Keys, Latch, Lock, Rate, RateLimiter, Revoke, RwLock, Semaphore};
use crate::config::Spec;
use crate::engine::Engine;
use crate::error::{HeldBy, LockError};
use crate::observe::Stats;

pub use self::builder::LockClientBuilder;
pub(crate) use self::global::current;
pub use self::global::{init, shutdown};
pub use self::health::Health;
pub use self::holds::HeldLock;

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
    /// Its URL is `memory:`, perhaps by mistake.
    in_process: bool,
}

/// Who holds a lock, and who waits for it; see [`LockClient::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The beginning of the holder's owner token. `None` if the lock is free. The first eight
    /// characters are the same for all locks of one client (its `Debug` shows them), so they tell
    /// clients apart.
    pub holder: Option<String>,
    /// The holder's name. `None` if the lock is free. The holder's client has a quarter of a second
    /// to say it.
    pub held_by: Option<HeldBy>,
    /// How many hold it. More than one only for a read-write lock or a semaphore: `holder` is then
    /// the one with the longest lease.
    pub holders: usize,
    /// How long that holder can still have it without renewing. `None` if the lock is free, or is
    /// held without an end.
    pub remaining: Option<Duration>,
    /// Places in the store's queue. Each process has at most one for each key, unless requests are
    /// fair.
    pub waiting: usize,
    /// Of a semaphore that is held: how many permits are taken.
    pub permits_taken: Option<u32>,
    /// How many are left, of the number that the last request for it said. Requests with another
    /// number count by their own.
    pub permits_left: Option<u32>,
}

/// What people see of a holder: not enough to release its lock.
fn beginning(holder: FoundHolder) -> String {
    let text = match holder {
        FoundHolder::Owner { owner, .. } => owner.to_string(),
        FoundHolder::Foreign(text) => text,
    };
    match text.char_indices().nth(8) {
        Some((at, _)) => format!("{}…", text[..at].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

impl LockClient {
    pub(crate) fn new(engine: Arc<Engine>, in_process: bool) -> Self {
        Self {
            engine,
            view: View::default(),
            in_process,
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The key as the engine knows it, in the namespace of this view.
    pub(crate) fn key(&self, key: impl Into<LockKey>) -> LockKey {
        self.view.key(key.into())
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
        let key = Keys::One(self.key(key));
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
        let keys = keys.into_iter().map(|key| self.key(key)).collect();
        Lock::new(&self.engine, Keys::Several(keys), self.spec(Spec::DEFAULT))
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

    /// Who holds the key and who waits for it. For people and dashboards: it may have changed when
    /// you read it.
    ///
    /// # Errors
    /// [`LockError::InvalidKey`], [`LockError::KeyConflict`] if the key is no lock,
    /// [`LockError::Unavailable`], [`LockError::Shutdown`].
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
    /// let guard = client.lock("k").lease(Duration::from_secs(5)).acquire().await?;
    /// let found = client.inspect("k").await?;
    /// assert!(found.holder.is_some() && found.remaining <= Some(Duration::from_secs(5)));
    /// assert_eq!(found.waiting, 0);
    /// let three = client.semaphore("downloads", 5).permits(3).await?;
    /// let found = client.inspect("downloads").await?;
    /// assert_eq!((found.permits_taken, found.permits_left), (Some(3), Some(2)));
    /// # drop((guard, three));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self, key: impl Into<LockKey>) -> Result<Inspection, LockError> {
        let key = self.key(key);
        let found = self.engine.inspect(key.clone()).await?;
        let held_by = match &found.holder {
            Some(holder) => Some(self.engine.identify_holder(&key, holder.who()).await),
            None => None,
        };
        let permits = found.permits.filter(|all| !all.is_read_write());
        Ok(Inspection {
            holder: found.holder.map(beginning),
            held_by,
            holders: found.holders,
            remaining: found.remaining,
            waiting: found.waiting,
            permits_taken: permits.map(|all| all.count),
            permits_left: permits.map(|all| all.of.saturating_sub(all.count)),
        })
    }

    /// Takes the lock from its holders in good order: an operator's tool. Their clients are asked
    /// by a message. Each loses its hold ([`LostReason::Revoked`](crate::LostReason::Revoked)), its
    /// body is stopped, and the lock is released when the body or guard has been dropped: never
    /// while something runs under it. This waits for that until the timeout, and says who did not
    /// answer and who still runs. A body under `on_lost = "continue"`, one that blocks its thread
    /// and a guard in somebody's hands may take long. Until they end, the hold is renewed as
    /// before.
    ///
    /// All kinds of locks. Of several holders all are asked, or one:
    /// [`Revoke::held_by`]. Those that come later are not. A client can refuse
    /// ([`revocable`](crate::LockClientBuilder::revocable)). A key that stays taken by
    /// `hold_at_least` stays so. Several keys of one hold end together.
    ///
    /// A revocation names the hold by its owner token, as the store shows it. So it needs the right
    /// to read the lock; to publish alone is not enough. What is stopped is stopped for good: the
    /// call returns [`LockError::Lost`], and nobody calls it again.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect). [`LockError::Config`] on an engine that passes no messages
    /// between clients.
    ///
    /// # Cancel safety
    /// If the future is dropped, those that were asked stop all the same.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # use lock_runtime::{LockError, LostReason};
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let report = client.lock("report").run(std::future::pending::<()>());
    /// let revoke = async {
    ///     # while client.inspect("report").await?.holder.is_none() {}
    ///     client.revoke("report", Duration::from_secs(5)).await
    /// };
    /// let (report, revoked) = tokio::join!(report, revoke);
    /// assert!(matches!(report, Err(LockError::Lost { reason: LostReason::Revoked, .. })));
    /// let revoked = revoked?;
    /// if !revoked.is_complete() {
    ///     println!("{revoked}"); // …; orders-7f9c was told, and still runs
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn revoke(&self, key: impl Into<LockKey>, timeout: Duration) -> Revoke {
        Revoke::new(Arc::clone(&self.engine), self.key(key), timeout)
    }

    /// Takes the lock away from its holder, and hands it to the next in the queue. True if it was
    /// held. The last resort, where [`revoke`](Self::revoke) gets no answer: the holder learns of
    /// it at its next renewal, and may work on until then, beside the next one.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not have happened.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").acquire().await?;
    /// assert!(client.force_release("k").await?);
    /// assert!(client.lock("k").try_acquire().await?.is_some());
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn force_release(&self, key: impl Into<LockKey>) -> Result<bool, LockError> {
        self.engine.force_release(self.key(key)).await
    }

    /// Asks the store for a sign of life, counts what this client does, and says what about the
    /// servers endangers locks.
    ///
    /// If the user may not ask (`INFO`, `TIME`), that is a
    /// [`Finding::Unknown`](crate::Finding::Unknown), which names the missing right. A master of a
    /// cluster, or a server of a quorum, that does not answer is listed beside the others
    /// ([`Finding::NoAnswer`](crate::Finding::NoAnswer)). It costs each server a handful of
    /// commands: for a health page, not for every request.
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
        servers.extend(self.in_process.then(diagnosis::of_this_process));
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
    /// tables and functions in PostgreSQL. On every other engine it does nothing. Repeating it
    /// changes nothing, and several processes may call it at once.
    ///
    /// The URL must name a user that may create them; the services themselves need less. A client
    /// for this can't be [connected](LockClientBuilder::connect) before: use
    /// [`connect_lazy`](LockClientBuilder::connect_lazy).
    ///
    /// # Errors
    /// [`LockError::Config`] for a user without the right to make them;
    /// [`LockError::Unavailable`] if the server does not answer.
    ///
    /// # Cancel safety
    /// All of it is done, or nothing.
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

    /// What this client does now, and what it has done: counters and states. Asks nobody, so it
    /// works while the store is down.
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
        self.engine.shutdown(timeout).await;
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
