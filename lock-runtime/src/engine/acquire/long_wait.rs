//! [`LongWait`]: a request that waits for long says so, once.

use std::fmt;
use std::time::Duration;

use lock_store::{Claim, ClientId, Holder, Instant};

use crate::config::Defaults;
use crate::engine::local_queue::Waiter;

/// When to say it, as long as it was not said.
#[derive(Debug)]
pub(super) struct LongWait {
    after: Duration,
    at: Option<Instant>,
}

/// Who has a key, in words.
struct InWords(Option<Holder>, ClientId);

impl LongWait {
    pub(super) fn new(started: Instant, defaults: &Defaults) -> Self {
        let after = defaults.warn_after;
        let at = Some(started + after);
        Self { after, at }
    }

    /// Not later than when it is to be said.
    pub(super) fn wake_at(&self, wake: Instant) -> Instant {
        self.at.map_or(wake, |at| at.min(wake))
    }

    /// Says it, if the time has come.
    pub(super) fn tells(&mut self, now: Instant, claim: &Claim, waiter: &Waiter) {
        if self.at.take_if(|at| now >= *at).is_none() {
            return;
        }
        let holder = InWords(waiter.liveness().holder(), claim.owner.client);
        tracing::warn!(
            key = %claim.key.shortened(),
            waited = ?self.after,
            %holder,
            ahead_in_this_process = waiter.ahead(),
            "a request still waits for its lock"
        );
    }
}

impl fmt::Display for InWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Holder::Owner(owner)) if owner.client == self.1 => f.write_str("this very client"),
            Some(Holder::Owner(owner)) => write!(f, "the client {:?}", owner.client),
            Some(Holder::Kept) => f.write_str("nobody: it is kept after a release"),
            Some(Holder::Foreign(_)) => f.write_str("a client that is not this library"),
            None => f.write_str("unknown"),
        }
    }
}
