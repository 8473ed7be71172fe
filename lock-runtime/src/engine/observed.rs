//! [`Observed`]: what the engine counts, and tells its observers, of requests and holds.

use std::time::Duration;

use lock_store::{Instant, LockKey, Permits};

use super::Engine;
use super::hold::Hold;
use crate::error::{LockError, LostReason};
use crate::observe::{About, Counters, Events, GrantedBy, LockKind, Subject, What};

/// Where what happens is counted, and from where it is told.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(super) counters: Counters,
    pub(super) events: Events,
}

impl Observed {
    pub(super) fn new(events: Events) -> Self {
        Self {
            counters: Counters::default(),
            events,
        }
    }

    /// Tells of a hold's loss, the first time.
    pub(super) fn lost(&self, hold: &Hold, now: Instant) {
        let Some(reason) = hold.loss_to_tell() else {
            return;
        };
        self.counters.lost();
        if self.events.are_wanted() {
            let held = now.saturating_duration_since(hold.since);
            let lost = move || What::Lost { reason, held };
            self.events
                .tell_later(Some(about(hold)), move |tell| tell.that(lost()));
        }
    }

    /// Tells that the store did not have a hold any more when it was released.
    pub(super) fn gone(&self, hold: &Hold, now: Instant) {
        self.counters.lost();
        let held = now.saturating_duration_since(hold.since);
        let reason = LostReason::Gone;
        self.events
            .tell(Some(subject(hold)), What::Lost { reason, held });
    }

    /// Tells of a renewal, and how long after its planned time it came.
    pub(super) fn renewed(&self, hold: &Hold, late: Duration) {
        if self.events.are_wanted() {
            let renewed = move || What::Renewed { late };
            self.events
                .tell_later(Some(about(hold)), move |tell| tell.that(renewed()));
        }
    }

    /// Tells that a guard has ended its hold.
    pub(super) fn released(&self, hold: &Hold, now: Instant) {
        self.counters.released();
        let held = now.saturating_duration_since(hold.since);
        tracing::debug!(key = %hold.key().shortened(), ?held, "a lock is released");
        self.events
            .tell(Some(subject(hold)), What::Released { held });
    }
}

fn subject(hold: &Hold) -> Subject<'_> {
    let kind = LockKind::of(hold.permits());
    Subject::new(hold.key(), hold.parts().len() - 1, kind)
}

fn about(hold: &Hold) -> About {
    About {
        key: hold.key().clone(),
        more_keys: hold.parts().len() - 1,
        kind: LockKind::of(hold.permits()),
    }
}

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
