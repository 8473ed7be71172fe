//! [`ObservedRequest`]: what is counted, and told the observers, of a request.

use std::time::Duration;

use lock_store::{Instant, LockKey, Permits};

use crate::engine::Engine;
use crate::error::LockError;
use crate::observe::{GrantedBy, LockKind, Subject, What};

/// A request, from its beginning to its end. Dropped before, it was cancelled.
pub(super) struct ObservedRequest<'e> {
    engine: &'e Engine,
    keys: &'e [LockKey],
    permits: Option<Permits>,
    pub(super) started: Instant,
    ended: bool,
}

impl<'e> ObservedRequest<'e> {
    pub(super) fn asks(engine: &'e Engine, keys: &'e [LockKey], permits: Option<Permits>) -> Self {
        let request = Self {
            engine,
            keys,
            permits,
            started: engine.clock.now(),
            ended: false,
        };
        if let Some(key) = request.key() {
            tracing::debug!(key = %key.shortened(), "a lock is asked for");
        }
        request.tell(What::Asked);
        request
    }

    /// Of several keys, the first in their order.
    fn key(&self) -> Option<&'e LockKey> {
        match self.keys {
            [key] => Some(key),
            keys => keys.iter().min(),
        }
    }

    fn tell(&self, what: What<'_>) {
        let events = &self.engine.observed.events;
        if !events.are_wanted() {
            return;
        }
        let kind = LockKind::of(self.permits);
        let more = self.keys.len().saturating_sub(1);
        let subject = self.key().map(|key| Subject::new(key, more, kind));
        events.tell(subject, what);
    }

    /// How long it took to the grant.
    pub(super) fn granted(mut self, how: GrantedBy, at: Instant) -> Duration {
        self.ended = true;
        let waited = at.saturating_duration_since(self.started);
        self.engine.observed.counters.granted(how);
        if let Some(key) = self.key() {
            let how = how.as_str();
            tracing::debug!(key = %key.shortened(), ?waited, how, "a lock is granted");
        }
        self.tell(What::Granted { waited, how });
        waited
    }

    pub(super) fn failed(mut self, error: &LockError) {
        self.ended = true;
        let waited = self.waited();
        self.engine.observed.counters.failed(error);
        self.tell(match error {
            LockError::Busy { .. } => What::Busy { waited },
            LockError::Unavailable { source, .. } => What::Unavailable {
                waited,
                error: source,
            },
            error => What::Refused { waited, error },
        });
    }

    fn waited(&self) -> Duration {
        let now = self.engine.clock.now();
        now.saturating_duration_since(self.started)
    }
}

impl Drop for ObservedRequest<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let waited = self.waited();
            self.engine.observed.counters.cancelled();
            self.tell(What::Cancelled { waited });
        }
    }
}
