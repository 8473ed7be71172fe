//! [`Observed`]: what the engine counts, and tells its observers, of holds.

use std::time::Duration;

use lock_store::Instant;

use super::hold::Hold;
use crate::error::LostReason;
use crate::observe::{Counters, Events, OwnedSubject, Subject, What};

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
    pub(super) fn record_lost(&self, hold: &Hold, now: Instant) {
        let Some(reason) = hold.take_unreported_loss() else {
            return;
        };
        self.record_loss(hold, reason, now);
    }

    pub(super) fn record_loss(&self, hold: &Hold, reason: LostReason, now: Instant) {
        self.counters.record_lost();
        let held = now.saturating_duration_since(hold.since);
        self.record_later(hold, What::Lost { reason, held });
    }

    /// Tells of a renewal, and how long after its first try it came.
    pub(super) fn record_renewed(&self, hold: &Hold, late: Duration) {
        self.record_later(hold, What::Renewed { late });
    }

    fn record_later(&self, hold: &Hold, what: What<'static>) {
        if self.events.are_wanted() {
            let subject = OwnedSubject {
                key: hold.key().clone(),
                more_keys: hold.parts().len() - 1,
                kind: hold.kind,
            };
            self.events
                .record_later(Some(subject), move |recorder| recorder.record(what));
        }
    }

    /// Tells that a guard has ended its hold.
    pub(super) fn record_released(&self, hold: &Hold, now: Instant) {
        self.counters.record_released();
        let held = now.saturating_duration_since(hold.since);
        tracing::debug!(key = %hold.key().shortened(), ?held, "a lock is released");
        let subject = Subject::new(hold.key(), hold.parts().len() - 1, hold.kind);
        self.events.record(Some(subject), What::Released { held });
    }
}
