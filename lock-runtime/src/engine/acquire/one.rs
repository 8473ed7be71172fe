//! The way to one key: in the local queue behind the earlier requests of this process, and in the
//! store's queue behind those of others.

use std::sync::Arc;
use std::time::Instant;

use lock_store::{Queue, StoreError, StoreErrorKind};

use super::command::Step;
use super::task::AcquireTask;
use crate::engine::Engine;
use crate::engine::errors::unavailable;
use crate::engine::fencing::window;
use crate::engine::hold::Hold;
use crate::engine::local_queue::Waiter;
use crate::engine::timing::{self, Retry};
use crate::error::LockError;

/// A request in the local queue. A handoff that it did not use goes to the next.
struct Queued<'e> {
    engine: &'e Engine,
    waiter: Waiter,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Some(handoff) = self.waiter.leave() {
            self.engine.pass_back(handoff);
        }
    }
}

/// Commands have failed in a row.
struct Failures {
    since: Instant,
    retry: Retry,
    error: StoreError,
}

impl AcquireTask<'_> {
    /// One try, one round trip, now. One more if the connection stays silent and another takes its
    /// place in time.
    pub(super) async fn once(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let (engine, key) = (self.engine, self.request.claim.key.clone());
        if let Some(settled) = engine.local_queues.settled(&key) {
            let _ = engine.clock.by(self.budget.gives_up(None), settled).await;
            now = engine.clock.now();
        }
        if engine.is_closing() {
            return Err(LockError::Shutdown);
        }
        let mut step = self.send(None, now).await?;
        now = engine.clock.now();
        // Silence that ends before the time is up is that of a connection and not of the store.
        let silent =
            matches!(&step, Step::Failed(error) if error.kind() == StoreErrorKind::Timeout);
        if silent && self.late.is_some() && now < self.budget.gives_up(None) {
            step = self.send(None, now).await?;
        }
        match step {
            Step::Held(hold) => Ok(hold),
            Step::Busy { .. } => Err(engine.busy(&key, &self.budget)),
            Step::Failed(error) => Err(unavailable(Some(&key), error)),
            Step::Cut => {
                let failure = engine.liveness.last_failure(self.budget.started);
                Err(unavailable(Some(&key), failure))
            }
        }
    }

    /// Waits for the key, as long as the budget says.
    pub(super) async fn wait(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let engine = self.engine;
        // A request that stands in the store's queue gets no handoff.
        let mut asking = self.options.fair || engine.defaults.local_handoffs == 0;
        let key = &self.request.claim.key;
        let (waiter, mut was_first) = engine.local_queues.join(key, !asking);
        let queued = Queued { engine, waiter };
        let waiter = &queued.waiter;
        let mut barges = !self.options.fair && was_first;
        let mut recheck_at = self.budget.started;
        let mut handoff_until = None;
        let mut asked = false;
        // Whether something was heard that only the store can explain.
        let mut called = true;
        let mut failing: Option<Box<Failures>> = None;
        loop {
            if engine.is_closing() {
                return Err(LockError::Shutdown);
            }
            let recheck = {
                let inbox = waiter.signal.take();
                if let Some(handoff) = inbox.handoff {
                    match self.take_over(handoff) {
                        Ok(hold) => return Ok(hold),
                        Err(handoff) => now = self.goes_on_from(handoff),
                    }
                    recheck_at = now;
                    (asking, barges) = (true, false);
                }
                if let Some(granted) = inbox.granted {
                    if let Some(hold) = self.handed_over(waiter, granted) {
                        return Ok(hold);
                    }
                    now = engine.clock.now();
                    recheck_at = now;
                }
                called |= failing.is_some() || inbox.granted.is_some() || inbox.recheck;
                inbox.recheck
            };
            // Others wait for a handoff that can't be used, and for what the store handed over to a
            // request that is not the first any more, because an earlier one was asleep.
            let must_ask =
                self.previous.is_some() || (called && (self.options.fair || self.expecting));
            let standing = waiter.standing();
            if standing.is_first && !was_first {
                was_first = true;
                // The one before has rechecked until now. Most likely it has just got what this
                // one waits for.
                if asked && !called {
                    recheck_at = recheck_at.max(timing::next_recheck(now, None));
                }
            }
            let may_ask = standing.is_first || must_ask;
            let over = asked && self.budget.ends().is_some_and(|ends| now >= ends);
            if may_ask && !asking && standing.may_get_handoff {
                // Another task of this process will pass its hold on, if it ends soon.
                barges = false;
                recheck_at = *handoff_until.get_or_insert_with(|| {
                    timing::awaits_handoff_until(now, &self.budget, &engine.defaults)
                });
            } else if may_ask && !asking {
                recheck_at = recheck_at.min(now);
            }
            if may_ask && !over && (recheck || now >= recheck_at) {
                if !asking {
                    asking = true;
                    if let Some(handoff) = waiter.asks_the_store() {
                        match self.take_over(handoff) {
                            Ok(hold) => return Ok(hold),
                            Err(handoff) => now = self.goes_on_from(handoff),
                        }
                        barges = false;
                    }
                }
                if !asked && self.options.fenced && waiter.has_others_behind() {
                    self.request.tokens = window::for_handoffs(&engine.defaults);
                }
                if !barges {
                    self.join_queue(&waiter.signal);
                }
                barges = false;
                asked = true;
                called = false;
                match self.send(Some(waiter), now).await? {
                    Step::Held(hold) => return Ok(hold),
                    Step::Busy { recheck_at: at } => {
                        failing = None;
                        // The plain first try can't queue: join the store's queue now, and only
                        // then wait.
                        recheck_at = if self.request.queue == Queue::Join {
                            at
                        } else {
                            engine.clock.now()
                        };
                        // A grant that was heard of before this reply was gone when the store wrote
                        // it, and must not be taken for one that came after it.
                        let before = waiter.signal.take();
                        debug_assert!(before.handoff.is_none(), "this request is not willing");
                        if before.granted.is_some() || before.recheck {
                            recheck_at = engine.clock.now();
                            called = true;
                        }
                    }
                    Step::Cut => {
                        recheck_at = engine.clock.now();
                        if let Some(error) = self.time_is_up(failing.as_deref()).await {
                            return Err(error);
                        }
                    }
                    Step::Failed(error) => {
                        // Counted from the first that failed.
                        let earlier = failing.as_ref().map(|one| (one.since, one.retry));
                        let (since, mut retry) = earlier.unwrap_or((now, Retry::default()));
                        recheck_at = retry.again_at(engine.clock.now());
                        failing = Some(Box::new(Failures {
                            since,
                            retry,
                            error,
                        }));
                    }
                }
                self.join_queue(&waiter.signal);
                now = engine.clock.now();
                continue;
            }
            if let Some(error) = self.time_is_up(failing.as_deref()).await {
                return Err(error);
            }
            let recheck_at = may_ask.then_some(recheck_at);
            let failed = failing.as_deref().map(|one| (one.since, &one.error));
            let wake = engine.wake_at(&self.budget, recheck_at, failed);
            let _ = engine.clock.by(wake, waiter.signal.notified()).await;
            now = engine.clock.now();
        }
    }

    fn time_is_up(&self, failing: Option<&Failures>) -> impl Future<Output = Option<LockError>> {
        let failing = failing.map(|one| (one.since, &one.error));
        let key = &self.request.claim.key;
        self.engine.time_is_up(key, &self.budget, failing, true)
    }
}
