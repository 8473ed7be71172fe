//! The client's own clock: monotonic, and never a caller's paused one.
//!
//! Time is read from [`Instant`], which continues while the machine sleeps. The runtime's timers do
//! not: they are alarms, late by as long as the machine slept. A task that an alarm wakes reads the
//! clock.
#![expect(clippy::disallowed_types, reason = "tokio's is the time of its timers")]

use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "__internals")]
use std::sync::Arc;
#[cfg(feature = "__internals")]
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
#[cfg(feature = "test-util")]
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::instant::Instant;
#[cfg(feature = "__internals")]
use crate::simulated_stop::SimulatedStop;

pin_project! {
    /// See [`Clock::by`]. (`select!` in an `async fn` would store the future twice.)
    pub struct By<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
    }
}

impl<F: Future> Future for By<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Some(output));
        }
        this.sleep.poll(cx).map(|()| None)
    }
}

/// Reads time and makes timers on the client's own runtime. Works on any thread, also outside of a
/// runtime.
#[derive(Clone, Debug)]
pub struct Clock {
    handle: Handle,
    /// Tests: `handle` is a runtime whose time may be paused, and the time of that runtime counts.
    #[cfg(feature = "test-util")]
    simulated: bool,
    /// Simulation: the milliseconds by which this clock is ahead of its runtime.
    #[cfg(feature = "__internals")]
    ahead: Option<Arc<AtomicI64>>,
    /// Simulation: stops the tasks that it starts, and lets the machine sleep.
    #[cfg(feature = "__internals")]
    pause: Option<SimulatedStop>,
}

impl Clock {
    /// The clock of a runtime whose time is real.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            #[cfg(feature = "test-util")]
            simulated: false,
            #[cfg(feature = "__internals")]
            ahead: None,
            #[cfg(feature = "__internals")]
            pause: None,
        }
    }

    /// The clock of a runtime whose time may be paused.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn simulated(handle: Handle) -> Self {
        Self {
            simulated: true,
            ..Self::new(handle)
        }
    }

    /// The current runtime, if its time is paused.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn paused_runtime() -> Option<Handle> {
        let runtime = Handle::try_current().ok()?;
        // Tokio does not tell. A running clock shows a later time after a moment.
        let (paused_at, began) = (tokio::time::Instant::now(), Instant::now());
        while began.elapsed() < Duration::from_micros(10) {
            std::hint::spin_loop();
        }
        (tokio::time::Instant::now() == paused_at).then_some(runtime)
    }

    /// The same clock, ahead of its runtime by the milliseconds stored there: for a server whose
    /// clock jumps. The sleep of its client's machine does not change it.
    #[cfg(feature = "__internals")]
    #[must_use]
    pub fn ahead(mut self, milliseconds: Arc<AtomicI64>) -> Self {
        self.ahead = Some(milliseconds);
        self
    }

    /// The same clock on a machine that `pause` controls: it stops the clock's tasks, and lets the
    /// machine sleep.
    #[cfg(feature = "__internals")]
    pub fn pausable(mut self, pause: Option<SimulatedStop>) -> Self {
        self.pause = pause;
        self
    }

    /// The present time on the monotonic clock.
    #[inline]
    pub fn now(&self) -> Instant {
        #[cfg(feature = "test-util")]
        if self.simulated {
            return self.simulated_now();
        }
        Instant::now()
    }

    #[cfg(feature = "test-util")]
    fn simulated_now(&self) -> Instant {
        let now = {
            let _entered = self.handle.enter();
            Instant::from_std(tokio::time::Instant::now().into_std())
        };
        self.shifted(now)
    }

    #[cfg(all(feature = "test-util", not(feature = "__internals")))]
    fn shifted(&self, now: Instant) -> Instant {
        now
    }

    #[cfg(feature = "__internals")]
    fn shifted(&self, now: Instant) -> Instant {
        if let Some(ahead) = &self.ahead {
            let ahead = ahead.load(Ordering::Relaxed);
            let by = Duration::from_millis(ahead.unsigned_abs());
            return if ahead < 0 { now - by } else { now + by };
        }
        now + self
            .pause
            .as_ref()
            .map_or(Duration::ZERO, SimulatedStop::slept)
    }

    /// An alarm of the client's runtime at that time. It is late by as long as the machine sleeps
    /// until then.
    #[inline]
    pub fn sleep_until(&self, at: Instant) -> Sleep {
        self.sleep_from(self.now(), at)
    }

    /// `now` was read a moment ago.
    fn sleep_from(&self, now: Instant, at: Instant) -> Sleep {
        let _entered = self.handle.enter();
        // Read after the clock, so that the alarm is not early.
        let alarms_now = tokio::time::Instant::now();
        let alarm = match at.checked_duration_since(now) {
            Some(left) => alarms_now + left,
            None => alarms_now.checked_sub(now - at).unwrap_or(alarms_now),
        };
        tokio::time::sleep_until(alarm)
    }

    /// The future's output, or `None` if it is not ready at `by`.
    pub fn by<F: Future>(&self, by: Instant, future: F) -> By<F> {
        self.by_from(self.now(), by, future)
    }

    /// [`by`](Self::by) for a caller that has read the clock a moment ago.
    pub fn by_from<F: Future>(&self, now: Instant, by: Instant, future: F) -> By<F> {
        let sleep = self.sleep_from(now, by);
        By { future, sleep }
    }

    /// The client's runtime.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Starts a task of the client on its runtime.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(self.stoppable(task)));
    }

    /// Wraps a future, so that a simulation can stop it.
    #[cfg(feature = "__internals")]
    pub fn stoppable<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let pause = self.pause.clone();
        async move {
            match pause {
                Some(pause) => pause.gate(future).await,
                None => future.await,
            }
        }
    }

    /// Wraps a future, so that a simulation can stop it.
    #[cfg(not(feature = "__internals"))]
    pub fn stoppable<F: Future>(&self, future: F) -> F {
        future
    }
}
