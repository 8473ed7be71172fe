//! [`SimulatedStop`]: SIGSTOP, SIGCONT and a machine's sleep, for a simulated client.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Stops and resumes futures that are wrapped by its [`gate`](Self::gate). A clone controls the
/// same futures.
#[derive(Clone, Debug, Default)]
pub struct SimulatedStop {
    state: Arc<Mutex<StopState>>,
    /// The milliseconds that the machine has slept.
    slept: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct StopState {
    stopped: bool,
    /// The futures that were woken meanwhile, in that order.
    woken: Vec<Waker>,
}

impl SimulatedStop {
    fn state(&self) -> MutexGuard<'_, StopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops polling all gated futures.
    pub fn stop(&self) {
        self.state().stopped = true;
    }

    /// Resumes polling. Futures that were woken meanwhile are polled now.
    pub fn go_on(&self) {
        let woken = {
            let mut state = self.state();
            state.stopped = false;
            std::mem::take(&mut state.woken)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Lets the machine sleep: afterwards its clock is this many milliseconds later, and its timers
    /// have not moved.
    pub fn sleep(&self, milliseconds: u64) {
        self.slept.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// How long the machine has slept.
    pub(crate) fn slept(&self) -> Duration {
        Duration::from_millis(self.slept.load(Ordering::Relaxed))
    }

    /// A future that works like `future`, but stops while this is stopped.
    pub async fn gate<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|cx: &mut Context<'_>| {
            let mut state = self.state();
            if state.stopped {
                state.woken.push(cx.waker().clone());
                return Poll::Pending;
            }
            drop(state);
            future.as_mut().poll(cx)
        })
        .await
    }
}
