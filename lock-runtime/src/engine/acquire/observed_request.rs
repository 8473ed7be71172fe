//! [`ObservedRequest`]: what is counted, and told the observers, of a request.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_store::{Instant, LockKey};

use crate::config::Resolved;
use crate::engine::Engine;
use crate::engine::reentrancy::{Got, OwnOrNested};
use crate::error::LockError;
use crate::observe::{GrantedBy, LockKind, Subject, What};

/// A request, from its beginning to its end. Dropped before, it was cancelled.
pub(super) struct ObservedRequest<'e> {
    pub(super) engine: &'e Engine,
    pub(super) keys: &'e [LockKey],
    pub(super) options: &'e Resolved,
    pub(super) started: Instant,
    /// The observers know that it waits.
    was_queued: AtomicBool,
    ended: bool,
}

impl<'e> ObservedRequest<'e> {
    pub(super) fn begin(engine: &'e Engine, keys: &'e [LockKey], options: &'e Resolved) -> Self {
        let request = Self {
            engine,
            keys,
            options,
            started: engine.clock.now(),
            was_queued: AtomicBool::new(false),
            ended: false,
        };
        if let Some(key) = request.key() {
            tracing::debug!(key = %key.shortened(), "a lock is asked for");
        }
        request.record(What::Asked);
        request
    }

    /// Of several keys, the first in their order.
    fn key(&self) -> Option<&'e LockKey> {
        match self.keys {
            [key] => Some(key),
            keys => keys.iter().min(),
        }
    }

    fn record(&self, what: What<'_>) {
        let events = &self.engine.observed.events;
        if !events.are_wanted() {
            return;
        }
        let kind = LockKind::of(self.options.permits);
        let more = match self.keys {
            [_] => 0,
            keys => keys.iter().collect::<BTreeSet<_>>().len().saturating_sub(1),
        };
        let subject = self.key().map(|key| Subject::new(key, more, kind));
        events.record_queued(subject, what, self.was_queued.load(Ordering::Relaxed));
    }

    /// Records once, for the observers, that the request waits: for whichever of its keys.
    pub(super) fn record_queued(&self) {
        if !self.was_queued.swap(true, Ordering::Relaxed) {
            self.record(What::Queued);
        }
    }

    pub(super) fn end(mut self, result: Result<OwnOrNested, LockError>) -> Result<Got, LockError> {
        self.ended = true;
        let counters = &self.engine.observed.counters;
        let held = match result {
            Ok(held) => held,
            Err(error) => {
                counters.record_failed(&error);
                self.record_failure(&error);
                return Err(error);
            }
        };
        let (how, since) = match &held {
            OwnOrNested::Own(hold) => (hold.how, hold.since),
            OwnOrNested::Nested(..) => (GrantedBy::Nested, self.engine.clock.now()),
        };
        counters.record_granted(how);
        let waited = since.saturating_duration_since(self.started);
        if let Some(key) = self.key() {
            let how = how.as_str();
            tracing::debug!(key = %key.shortened(), ?waited, how, "a lock is granted");
        }
        self.record(What::Granted { waited, how });
        Ok(Got {
            held,
            since,
            waited,
        })
    }

    fn record_failure(&self, error: &LockError) {
        let waited = self.waited();
        self.record(match error {
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
            self.engine.observed.counters.record_cancelled();
            self.record(What::Cancelled { waited });
        }
    }
}
