//! [`Lock`]: a request for a lock.

mod lead;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_store::LockKey;

use super::guard::Guard;
use super::run::{self, Slot};
use crate::config::{HoldAfter, Mode, OnLost, Spec, Wait};
use crate::engine::Engine;
use crate::error::LockError;
use crate::one_or_more::OneOrMore;

/// A request for a lock. Set options first, then call [`acquire`](Self::acquire),
/// [`try_acquire`](Self::try_acquire), [`run`](Self::run), [`run_with`](Self::run_with) or
/// [`lead`](Self::lead). Nothing happens before. Awaiting the request itself is `acquire`, with its
/// future in a box.
///
/// # Default
/// - lease: the client's (30 s), renewed by the watchdog
/// - wait: the client's (10 s)
/// - not fair, reentrant, not fenced, `hold_at_least` zero, no `max_hold`, `on_lost` cancels
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let client = lock_runtime::LockClient::in_memory();
/// let left = client
///     .lock("stock:42")
///     .lease(Duration::from_secs(10))
///     .wait(Duration::from_secs(3))
///     .run(async { 41 })
///     .await?;
/// assert_eq!(left, 41);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until `acquire`, `try_acquire`, `run`, `run_with` or `lead`, \
    or until it is awaited"]
pub struct Lock {
    engine: Arc<Engine>,
    keys: OneOrMore<LockKey>,
    spec: Spec,
}

impl Lock {
    pub(crate) fn new(engine: &Arc<Engine>, keys: OneOrMore<LockKey>, spec: Spec) -> Self {
        let engine = Arc::clone(engine);
        Self { engine, keys, spec }
    }

    pub(crate) fn mode(mut self, mode: Mode) -> Self {
        self.spec.mode = mode;
        self
    }

    /// A fixed lease (10 ms to 24 h), not renewed unless [`renew`](Self::renew) says so.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.spec.lease = Some(lease);
        self
    }

    /// Whether the watchdog renews the lease, each third of it. Default: only if no
    /// [`lease`](Self::lease) was given.
    pub fn renew(mut self, renew: bool) -> Self {
        self.spec.renew = Some(renew);
        self
    }

    /// The longest hold (10 ms or more). The client's lease and the last renewal are shortened to
    /// end there. Then the guard is lost. A [`lease`](Self::lease) given beside it must not be
    /// longer.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.spec.max_hold = Some(max_hold);
        self
    }

    /// How long to wait for the lock: one budget for queueing, network and retries. Zero is one
    /// try.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.spec.wait = Some(Wait::For(wait));
        self
    }

    /// Waits for a busy lock without end, but not for a dead store. On one server or a quorum the
    /// request ends after 2 s of silence
    /// ([`unavailable_after`](crate::LockClientBuilder::unavailable_after)). Under Sentinel, in a
    /// Cluster, on ZooKeeper, etcd, and PostgreSQL with several hosts, it ends after the client's
    /// default wait without an answer.
    pub fn wait_forever(mut self) -> Self {
        self.spec.wait = Some(Wait::Forever);
        self
    }

    /// Keeps the key taken for at least this long (at most 24 h), even if the guard is released
    /// before. The release does it: if the process dies, the key is free when its lease ends.
    /// [`hold_after`](Self::hold_after) says whether also after a failure.
    pub fn hold_at_least(mut self, hold_at_least: Duration) -> Self {
        self.spec.hold_at_least = Some(hold_at_least);
        self
    }

    /// After which bodies [`hold_at_least`](Self::hold_at_least) counts. Default:
    /// [`HoldAfter::Always`].
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use lock_runtime::{HoldAfter, LockClient, LockError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LockError> {
    /// # let client = LockClient::in_memory();
    /// let job = || {
    ///     let lock = client.lock("job:report").hold_at_least(Duration::from_secs(30));
    ///     lock.hold_after(HoldAfter::Success)
    /// };
    /// assert!(job().run(async { Err::<(), _>("no paper") }).await?.is_err());
    /// // It failed, so another one may try at once.
    /// assert!(job().run(async { Ok::<_, &str>(()) }).await?.is_ok());
    /// assert!(client.lock("job:report").try_acquire().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn hold_after(mut self, hold_after: HoldAfter) -> Self {
        self.spec.hold_after = hold_after;
        self
    }

    /// Arrival order over all processes. Readers, writers and permits are always served so, except
    /// in another library's layout. Nothing is handed off inside the process then, so a hot key is
    /// some 30 times slower.
    ///
    /// Three exceptions. A request granted just as its connection drops moves to the back of the
    /// queue. A process that the store has not heard for two seconds, because it stands still or is
    /// cut off, is suspended until it is heard again. Where names are shared with clients that know
    /// no queue, a process that itself asks without `fair` leaves the key free for moments, and
    /// whoever asks then may get it.
    pub fn fair(mut self) -> Self {
        self.spec.fair = true;
        self
    }

    /// Whether a request of the same key inside a hold shares it (default), or gets
    /// [`LockError::WouldDeadlock`].
    pub fn reentrant(mut self, reentrant: bool) -> Self {
        self.spec.reentrant = reentrant;
        self
    }

    /// Asks for a fencing token with the grant.
    pub fn fenced(mut self) -> Self {
        self.spec.fenced = true;
        self
    }

    /// What metrics and traces call this lock and all others of its kind, such as
    /// `stock:<product>`. Keys of a template have it as their label by default, others have none.
    pub fn label(mut self, label: &'static str) -> Self {
        self.keys = self.keys.map(|key| key.labelled(label));
        self
    }

    /// What [`run`](Self::run) does with the body when the lock is lost. Default:
    /// [`OnLost::Cancel`].
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.spec.on_lost = on_lost;
        self
    }

    /// Waits for the lock. Served in arrival order inside this process, and over all processes if
    /// [`fair`](Self::fair).
    ///
    /// Give the [`Guard`] a name: `let _ = …` drops it, which releases at once.
    ///
    /// # Errors
    /// - [`LockError::Busy`]: the lock did not become the caller's within the wait.
    /// - [`LockError::Unavailable`]: the store did not answer, or refused.
    /// - [`LockError::InvalidKey`], [`LockError::Config`], [`LockError::KeyConflict`]: a key or an
    ///   option that can't work. `Config` also in a child process, for a client from before the
    ///   `fork()`.
    /// - [`LockError::WouldDeadlock`]: the call chain holds the key and can't share it.
    /// - [`LockError::Lost`]: the hold that it would share is lost.
    /// - [`LockError::Shutdown`]: the client was shut down.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in the queue and leaves nothing behind. If the store has
    /// granted the lock meanwhile, that is undone in the background.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").fair().wait(Duration::from_secs(3)).acquire().await?;
    /// assert!(guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    /// The name decides how long it is held; [`run`](Self::run) needs none:
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let _ = client.lock("k").acquire().await?;
    /// assert!(client.lock("k").try_acquire().await?.is_some(), "it is free again");
    /// let _guard = client.lock("k").acquire().await?;
    /// let second = client.lock("k").try_acquire().await?;
    /// assert!(second.is_none(), "it is held to the end of the block");
    /// # Ok(())
    /// # }
    /// ```
    // An `async fn` would have room for the request twice, and for its options before and after
    // they are resolved.
    pub fn acquire(self) -> impl Future<Output = Result<Guard, LockError>> + Send {
        let Self { engine, keys, spec } = self;
        let options = spec.resolve(engine.defaults());
        async move {
            match options {
                Err(error) => Err(error),
                Ok(ref options) => {
                    let keys = keys.as_slice();
                    let error = match engine.acquire(keys, options).await {
                        Ok(got) => {
                            let kept = options.kept_after_success();
                            return Ok(Guard::new(engine, keys, got, spec.on_lost, kept));
                        }
                        Err(error) => error,
                    };
                    match error {
                        LockError::KeyConflict { .. } => {
                            Err(Box::pin(engine.explain(error, options.permits)).await)
                        }
                        error => Err(error),
                    }
                }
            }
        }
    }

    /// One try, one round trip: `None` if the lock is busy. If the connection stays silent and a
    /// new one is answered, one more round trip.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), except `Busy`.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").try_acquire().await?;
    /// assert!(guard.is_some());
    /// assert!(client.lock("k").try_acquire().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_acquire(mut self) -> Result<Option<Guard>, LockError> {
        self.spec.wait = Some(Wait::For(Duration::ZERO));
        match self.acquire().await {
            Ok(guard) => Ok(Some(guard)),
            Err(LockError::Busy { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a future under the lock, as the attribute does. The future is first polled when the
    /// lock is held. It is stopped when the lock is lost, unless [`on_lost`](Self::on_lost) says
    /// otherwise. Its output is returned after the release.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire). Also [`LockError::Lost`] if the lock was lost before the body
    /// had ended; [`LockError::body_ended`] says whether the body was stopped, and what to do.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body and releases in the background.
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        let slot = Slot::new();
        slot.put(self.acquire().await?);
        run::run(&slot, body).await
    }

    /// As [`run`](Self::run), for a body that uses its guard.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    ///
    /// # Examples
    /// ```
    /// # use lock_runtime::{Guard, LockClient, LockError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LockError> {
    /// let client = LockClient::in_memory();
    /// let lock = client.lock("a").fenced();
    /// let token = lock.run_with(async |guard: &Guard| guard.fencing_token()).await?;
    /// assert!(token.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_with<T>(self, body: impl AsyncFnOnce(&Guard) -> T) -> Result<T, LockError> {
        let slot = Slot::new();
        let guard = slot.put(self.acquire().await?);
        run::run(&slot, body(guard)).await
    }
}

impl IntoFuture for Lock {
    type Output = Result<Guard, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}
