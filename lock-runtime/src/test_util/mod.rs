//! For tests of services: clients that follow tokio's paused clock, and a store with faults.

mod faults;
mod faulty_store;

use lock_store::Clock;

use crate::client::{LockClient, LockClientBuilder};

pub use self::faults::{Faults, HeldByAnother};

impl LockClient {
    /// As [`in_memory`](Self::in_memory), and follows the paused clock of the calling runtime: a
    /// wait of 60 s takes 60 virtual seconds and no real time, and a lease ends when the clock is
    /// advanced. Needs the feature `test-util`, which brings tokio's own.
    ///
    /// Everything that counts time does so on that clock: waits, leases and their renewal,
    /// `lost()`, `max_hold`, `unavailable_after`, rate limiters, latches. Tokio moves the clock
    /// when all tasks wait, and renewals happen on the way. `tokio::time::advance` jumps: the time
    /// that it skips is time in which this process stood still, so a lease that ends within it is
    /// lost.
    ///
    /// The client works on the calling runtime, without a thread of its own, and as long as that
    /// runtime. So give it to annotated functions with [`scope`](Self::scope), and
    /// [`install`](Self::install) no such client.
    ///
    /// If there is no runtime whose clock is paused here, each request, and each question to its
    /// store, is [`LockError::Config`](crate::LockError::Config): a client that took real time
    /// would not show what the test asks.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use lock_runtime::{LockClient, LockError};
    /// // In a test: #[tokio::test(start_paused = true)]
    /// #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// async fn main() -> Result<(), LockError> {
    ///     let client = LockClient::in_memory_paused();
    ///     let guard = client.lock("k").acquire().await?;
    ///     let (minute, began) = (Duration::from_secs(60), tokio::time::Instant::now());
    ///     let refused = client.lock("k").wait(minute).acquire().await;
    ///     assert!(refused.is_err_and(|error| error.is_busy()) && began.elapsed() >= minute);
    ///     guard.release().await
    /// }
    /// ```
    #[must_use]
    pub fn in_memory_paused() -> Self {
        let Some(runtime) = Clock::paused_runtime() else {
            return Self::unusable(
                "`LockClient::in_memory_paused` follows a paused clock, and there is none where it \
                 was called: write `#[tokio::test(start_paused = true)]`, or call \
                 `tokio::time::pause()` before it",
            );
        };
        LockClientBuilder::for_one_process()
            .on_runtime(runtime)
            .in_this_process()
    }

    /// As [`in_memory`](Self::in_memory), with a handle that breaks the store: silence, refusals, a
    /// lock that is lost or held by somebody else. In a runtime whose clock is paused the client
    /// follows that clock, as [`in_memory_paused`](Self::in_memory_paused). Needs the feature
    /// `test-util`.
    ///
    /// # Examples
    /// See [`Faults`].
    #[must_use]
    pub fn in_memory_with_faults() -> (Self, Faults) {
        let builder = LockClientBuilder::for_one_process();
        Faults::of(match Clock::paused_runtime() {
            Some(runtime) => builder.on_runtime(runtime),
            None => builder,
        })
    }
}
