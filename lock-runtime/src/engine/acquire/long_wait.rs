//! [`LongWait`]: a request that waits for long says so, once. A leader's may.

use std::time::Duration;

use lock_store::{Instant, LockKey};

use crate::config::{Defaults, Resolved};
use crate::engine::Engine;
use crate::engine::local_queue::Waiter;

/// How long before the warning we ask the holder for its name.
const ASKS_BEFORE: Duration = Duration::from_millis(250);

/// When to say it, as long as it was not said.
#[derive(Debug)]
pub(super) struct LongWait {
    after: Duration,
    asks_at: Option<Instant>,
    at: Option<Instant>,
}

impl LongWait {
    pub(super) fn new(started: Instant, options: &Resolved, defaults: &Defaults) -> Self {
        let after = defaults.warn_after;
        let at = (!options.leads).then(|| started + after);
        Self {
            after,
            asks_at: at.map(|at| at.checked_sub(ASKS_BEFORE).unwrap_or(at)),
            at,
        }
    }

    /// Not later than when it is to be said.
    pub(super) fn wake_at(&self, wake: Instant) -> Instant {
        let next = self.asks_at.or(self.at);
        next.map_or(wake, |at| at.min(wake))
    }

    /// Says it, if the time has come.
    pub(super) fn warn(&mut self, engine: &Engine, now: Instant, key: &LockKey, waiter: &Waiter) {
        if self.asks_at.take_if(|at| now >= *at).is_some() {
            engine.ask_for_name(key, waiter.liveness().holder());
        }
        if self.at.take_if(|at| now >= *at).is_none() {
            return;
        }
        let held_by = engine.held_by(key, waiter.liveness().holder());
        tracing::warn!(
            key = %key.shortened(),
            waited = ?self.after,
            ahead_in_this_process = waiter.ahead(),
            "a request still waits for its lock, which is {held_by}"
        );
    }
}
