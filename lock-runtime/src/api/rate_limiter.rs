//! [`RateLimiter`]: how many pass in a time, over all processes.

use std::sync::Arc;
use std::time::Duration;

use lock_store::LockKey;

use super::rate::Rate;
use crate::engine::Engine;
use crate::engine::rate::RateOutcome;
use crate::error::LockError;

/// Longer waits are cut to this.
const MAX_WAIT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Lets as many calls pass as a [`Rate`] says, counted over all clients of one store and namespace
/// that use the same key; see [`LockClient::rate_limiter`](crate::LockClient::rate_limiter).
/// Cloning is cheap, and clones count together.
///
/// - In any time `t`, by the store's clock, at most `rate × t + burst` pass, as long as the store
///   keeps acknowledged writes. A store that lost its data begins with a full bucket. The default
///   burst is the number of the rate: of `Rate::per_second(5)` 10 can pass within a second.
/// - With [`Rate::at_most`] never more than its number pass in any time of its length. Its log
///   begins empty in a store that lost its data.
/// - Requests that wait are served in the order in which they reached the store. Small requests do
///   not starve large ones.
///
/// A rate is a token bucket, computed as the *generic cell rate algorithm* (ATM Forum, *Traffic
/// Management 4.0*; known from `redis-cell`, `throttled` and `governor`). A decision is one
/// command. Each key has one small value, which the store forgets when the bucket is full again. An
/// exact limit is a sliding window log.
/// Only the store's clock counts. A limiter may share its key with a lock.
///
/// All users of a key should give the same rate. Another rate, as during a roll-out, does no harm:
/// at worst the bucket is empty by that rate. Requests that wait keep their turns.
///
/// # Default
/// - wait: zero, a decision at once
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # use lock_runtime::{LockClient, LockError, Rate, lock_key};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), LockError> {
/// # let client = LockClient::in_memory();
/// # let app_id = 7;
/// let limiter = client.rate_limiter(lock_key!("api:<app_id>"), Rate::per_minute(5).burst(2));
/// limiter.acquire().await?;
/// limiter.acquire().await?;
/// match limiter.acquire().await {
///     Err(LockError::RateLimited { retry_after, .. }) => {
///         assert!(retry_after <= Duration::from_secs(12));
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a rate limiter does nothing until it is asked"]
pub struct RateLimiter {
    engine: Arc<Engine>,
    key: LockKey,
    rate: Rate,
    wait: Duration,
}

/// A [`RateLimiter`]'s answer without waiting; see [`RateLimiter::try_acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The caller may go on. The tokens are taken.
    #[non_exhaustive]
    Passed {
        /// How many more could pass right now.
        remaining: u32,
    },
    /// The caller may not go on. Nothing is taken, unless the store answered too late.
    #[non_exhaustive]
    Limited {
        /// After this time the same request could pass, if nobody else takes the tokens.
        retry_after: Duration,
    },
}

impl Decision {
    /// Whether the caller may go on.
    #[must_use]
    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed { .. })
    }
}

impl RateLimiter {
    pub(crate) fn new(engine: Arc<Engine>, key: LockKey, rate: Rate) -> Self {
        Self {
            engine,
            key,
            rate,
            wait: Duration::ZERO,
        }
    }

    /// How long [`acquire`](Self::acquire) may wait for its turn (at most 30 days). Zero, the
    /// default, decides at once.
    ///
    /// A request that waits takes its tokens in advance and sleeps exactly until they are there. If
    /// that would take longer than the wait, it fails at once and takes nothing. If the store
    /// answers so late that the turn has passed, the tokens are gone.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Takes one token, and waits for its turn if need be.
    ///
    /// # Errors
    /// - [`LockError::RateLimited`]: its turn would come after the wait.
    /// - [`LockError::Unavailable`]: the store did not answer, or refused. It comes within the
    ///   longer of the wait and the command timeout.
    /// - [`LockError::Config`]: a rate that can't work.
    /// - [`LockError::KeyConflict`]: the limiter's key in the store is something else.
    /// - [`LockError::InvalidKey`], [`LockError::Shutdown`].
    ///
    /// A command whose answer was lost may have taken the token all the same. Then fewer pass than
    /// could, never more.
    ///
    /// # Cancel safety
    /// If the future is dropped while it waits, its token is lost: others do not pass earlier.
    /// Nothing else is left behind.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use lock_runtime::{LockClient, LockError, Rate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LockError> {
    /// # let client = LockClient::in_memory();
    /// // One every 20 ms; calls that come too early are spread over up to a second.
    /// let rate = Rate::per_second(50).burst(1);
    /// let limiter = client.rate_limiter("partner", rate).wait(Duration::from_secs(1));
    /// for _ in 0..3 {
    ///     limiter.acquire().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire(&self) -> Result<(), LockError> {
        self.permits(1).await
    }

    /// Takes this many tokens, all or none.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire). More than the burst or the exact limit can never pass:
    /// [`LockError::Config`].
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    pub async fn permits(&self, tokens: u32) -> Result<(), LockError> {
        match self.ask(tokens, self.wait).await? {
            RateOutcome::Passed { .. } => Ok(()),
            RateOutcome::Limited { retry_after } => Err(LockError::RateLimited {
                key: self.key.clone(),
                retry_after,
            }),
        }
    }

    /// Takes one token if there is one now, whatever the [`wait`](Self::wait) is. To be limited is
    /// no error here.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), except `RateLimited`.
    ///
    /// # Cancel safety
    /// If the future is dropped, the token may have been taken.
    ///
    /// # Examples
    /// ```
    /// # use lock_runtime::{Decision, LockClient, LockError, Rate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LockError> {
    /// # let client = LockClient::in_memory();
    /// let limiter = client.rate_limiter("search", Rate::per_hour(1000).burst(10));
    /// let status = match limiter.try_acquire().await? {
    ///     Decision::Passed { remaining, .. } => {
    ///         format!("200, X-RateLimit-Remaining: {remaining}")
    ///     }
    ///     Decision::Limited { retry_after, .. } => {
    ///         format!("429, Retry-After: {}", retry_after.as_secs() + 1)
    ///     }
    /// };
    /// assert_eq!(status, "200, X-RateLimit-Remaining: 9");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_acquire(&self) -> Result<Decision, LockError> {
        self.try_permits(1).await
    }

    /// Takes this many tokens if they are there now, all or none. Zero takes nothing and says how
    /// many there are.
    ///
    /// # Errors
    /// As [`permits`](Self::permits), except `RateLimited`.
    ///
    /// # Cancel safety
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_permits(&self, tokens: u32) -> Result<Decision, LockError> {
        Ok(match self.ask(tokens, Duration::ZERO).await? {
            RateOutcome::Passed { left } => Decision::Passed { remaining: left },
            RateOutcome::Limited { retry_after } => Decision::Limited { retry_after },
        })
    }

    async fn ask(&self, tokens: u32, wait: Duration) -> Result<RateOutcome, LockError> {
        let mut request = self.rate.request(self.key.clone(), tokens)?;
        request.wait = wait.min(MAX_WAIT);
        self.engine.take_tokens(request).await
    }
}
