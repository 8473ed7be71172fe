//! [`Latch`]: waits until something has happened N times.

use std::sync::Arc;
use std::time::Duration;

use lock_store::LockKey;

use crate::config::{FAR, LATCH_TTL, Wait, check_lease};
use crate::engine::Engine;
use crate::error::LockError;

/// A count-down latch that processes share. Waiters go on when it was counted down to zero.
///
/// One process [`set`](Self::set)s it to the number of parts of a job. Each process that has done a
/// part calls [`count_down`](Self::count_down). A process that needs all parts calls
/// [`wait`](Self::wait), before or after the `set`. It is the `CountDownLatch` of
/// `java.util.concurrent` and of Redisson. As long as the store keeps acknowledged writes:
/// - **Each call counts once**, however often its command had to be sent, and however late a
///   duplicate arrives. The store remembers a call for two minutes. It carries out none that was
///   sent more than a minute ago by the store's clock.
/// - **It opens when it is counted down to zero, and stays open** until it expires or is set again.
///   A late waiter goes on at once.
/// - **A lost message costs time, never a wait without end.** The last count is told to all
///   waiters, and each rechecks every second besides.
/// - **It expires** after 24 h, or after [`ttl`](Self::ttl), counted from the `set`, open or not.
///   So nothing stays behind in the store.
///
/// A latch has no holder and no lease. A process that dies before its count leaves the others
/// waiting until their timeout, or until the latch expires. A key is either a lock or a latch: the
/// other gets [`LockError::KeyConflict`].
///
/// A wait costs the store one command, and one a second for each process and key, however many
/// tasks wait. `set`, `count_down` and `count` cost one each. A client's first `set` or
/// `count_down` costs one more, which learns the store's time. The last count also sends one
/// message to each process that waits.
///
/// # Default
/// - ttl: 24 h
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let client = lock_runtime::LockClient::in_memory();
/// let parts = client.latch("import:2024-05-01").ttl(Duration::from_secs(3600));
/// parts.set(3).await?;
/// for _part in 0..3 {
///     let parts = parts.clone();
///     tokio::spawn(async move {
///         // import this part
///         parts.count_down().await
///     });
/// }
/// parts.wait(Duration::from_secs(60)).await?;
/// assert_eq!(parts.count().await?, Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a latch does nothing until `set`, `count_down`, `count` or `wait`"]
pub struct Latch {
    engine: Arc<Engine>,
    key: LockKey,
    ttl: Duration,
}

impl Latch {
    pub(crate) fn new(engine: Arc<Engine>, key: LockKey) -> Self {
        Self {
            engine,
            key,
            ttl: LATCH_TTL,
        }
    }

    /// How long the latch exists (10 ms to 24 h) after the next [`set`](Self::set) of this value,
    /// open or not. Default: 24 h. Choose it longer than the work and the longest wait together.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The latch's key.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// Sets the latch to open after `count` counts, if it is not set or has opened. True if this
    /// call set it. False if it is set already and has not opened: then it stays as it is.
    ///
    /// # Errors
    /// - [`LockError::Config`]: a count of zero, or a [`ttl`](Self::ttl) outside 10 ms to 24 h.
    /// - [`LockError::KeyConflict`]: the key holds something that is not a latch.
    /// - [`LockError::Unavailable`]: the store did not answer within the client's wait (30 s at
    ///   most), or for 2 s where no other server can take over. The latch may be set, now or in a
    ///   moment.
    /// - [`LockError::InvalidKey`], [`LockError::Shutdown`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the latch may or may not be set.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let latch = client.latch("ready");
    /// assert!(latch.set(2).await?);
    /// assert!(!latch.set(5).await?);
    /// assert_eq!(latch.count().await?, Some(2));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set(&self, count: u32) -> Result<bool, LockError> {
        check_lease("ttl", self.ttl)?;
        if count == 0 {
            return Err(LockError::config(
                "a latch that is set to 0 would be open from the start; set it to how often \
                 `count_down` will be called",
            ));
        }
        self.engine.set_latch(&self.key, count, self.ttl).await
    }

    /// Counts down by one and returns how many counts are left. Zero means that the latch is open.
    /// Only one call, the last, takes it from one to zero. On an open latch a call changes nothing.
    ///
    /// # Errors
    /// - [`LockError::LatchNotSet`]: the latch was never set, has expired, or the store lost it. No
    ///   waiter will be let through. Have it set again before the work is done, with a
    ///   [`ttl`](Self::ttl) that is longer than the work.
    /// - [`LockError::KeyConflict`]: the key holds something that is not a latch.
    /// - [`LockError::Unavailable`]: the store did not answer within the client's wait (30 s at
    ///   most), or for 2 s where no other server can take over. The call may have counted, or may
    ///   count in a moment. A new call is a new count, so look at [`count`](Self::count) first.
    /// - [`LockError::InvalidKey`], [`LockError::Shutdown`].
    ///
    /// # Cancel safety
    /// If the future is dropped, it counts once or not at all.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let latch = client.latch("parts");
    /// latch.set(2).await?;
    /// assert_eq!(latch.count_down().await?, 1);
    /// assert_eq!(latch.count_down().await?, 0);
    /// assert_eq!(latch.count_down().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn count_down(&self) -> Result<u32, LockError> {
        self.engine.count_down(&self.key).await
    }

    /// How many counts are left: zero if the latch is open, `None` if it is not set. It may have
    /// changed when you read it.
    ///
    /// # Errors
    /// - [`LockError::KeyConflict`]: the key holds something that is not a latch.
    /// - [`LockError::Unavailable`]: the store did not answer within the client's wait (30 s at
    ///   most), or for 2 s where no other server can take over.
    /// - [`LockError::InvalidKey`], [`LockError::Shutdown`].
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// assert_eq!(client.latch("parts").count().await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn count(&self) -> Result<Option<u32>, LockError> {
        self.engine.latch_count(&self.key).await
    }

    /// Waits until the latch is open, at most for `timeout`. Zero is one look. A latch that is not
    /// set yet is waited for, too: there is no race between `wait` and `set`. If the latch opens
    /// during the wait, the wait succeeds, even if the latch is set again at once.
    ///
    /// # Errors
    /// - [`LockError::LatchClosed`]: it did not open in this time. The store is up: it said so.
    /// - [`LockError::LatchNotSet`]: it was set, and then gone before it opened (expired, or the
    ///   store lost its data). Parts of the work may be done. Set it again for the rest.
    /// - [`LockError::Unavailable`]: the store did not answer, or refused.
    /// - [`LockError::KeyConflict`]: the key holds something that is not a latch.
    /// - [`LockError::InvalidKey`], [`LockError::Shutdown`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind: its place among the waiters is given up in the
    /// background.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let latch = client.latch("ready");
    /// let waiting = tokio::spawn({
    ///     let latch = latch.clone();
    ///     async move { latch.wait(Duration::from_secs(10)).await }
    /// });
    /// latch.set(1).await?;
    /// latch.count_down().await?;
    /// assert!(waiting.await.is_ok_and(|waited| waited.is_ok()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait(&self, timeout: Duration) -> Result<(), LockError> {
        let wait = Wait::For(timeout.min(FAR));
        self.engine.wait_for_latch(&self.key, wait).await
    }

    /// Waits until the latch is open, as long as it takes, but not for a dead store: the call ends
    /// after 2 s of silence ([`unavailable_after`](crate::LockClientBuilder::unavailable_after)),
    /// and where another server can take over, after the client's default wait without an answer.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), without `LatchClosed`.
    ///
    /// # Cancel safety
    /// As [`wait`](Self::wait).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let latch = client.latch("ready");
    /// latch.set(1).await?;
    /// latch.count_down().await?;
    /// latch.wait_forever().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_forever(&self) -> Result<(), LockError> {
        self.engine.wait_for_latch(&self.key, Wait::Forever).await
    }
}
