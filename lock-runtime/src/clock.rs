//! The client's own clock: monotonic, and never a caller's paused one.

use std::future::Future;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::time::Sleep;

/// Reads time and makes timers on the client's own runtime, from any thread and without a runtime of the caller's.
#[derive(Clone, Debug)]
pub struct Clock {
    handle: Handle,
    /// Simulation: `handle` is a runtime whose time is paused, and its clock is the one that counts.
    #[cfg(feature = "test-util")]
    simulated: bool,
}

impl Clock {
    /// The clock of a runtime whose time is real.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            #[cfg(feature = "test-util")]
            simulated: false,
        }
    }

    /// The clock of a runtime whose time is paused.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn simulated(handle: Handle) -> Self {
        Self {
            handle,
            simulated: true,
        }
    }

    /// Now, on the monotonic clock.
    pub fn now(&self) -> Instant {
        #[cfg(feature = "test-util")]
        if self.simulated {
            let _entered = self.handle.enter();
            return tokio::time::Instant::now().into_std();
        }
        Instant::now()
    }

    pub(crate) fn sleep_until(&self, at: Instant) -> Sleep {
        let _entered = self.handle.enter();
        tokio::time::sleep_until(at.into())
    }

    /// The future's output, or `None` if it is not there at `by`.
    pub(crate) async fn by<F: Future>(&self, by: Instant, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep_until(by) => None,
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}
