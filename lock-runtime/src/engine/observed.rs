//! [`Observed`]: what the engine counts, and tells its observers, of holds.

use std::time::Duration;

use lock_store::Instant;

use super::hold::Hold;
use crate::error::LostReason;
use crate::observe::{About, Counters, Events, Subject, What};

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

    /// Tells that the store did not have a hold any more when it was released.
    pub(super) fn record_gone(&self, hold: &Hold, now: Instant) {
        self.record_loss(hold, LostReason::Gone, now);
    }

    fn record_loss(&self, hold: &Hold, reason: LostReason, now: Instant) {
        self.counters.record_lost();
        if self.events.are_wanted() {
            let held = now.saturating_duration_since(hold.since);
            let lost = What::Lost { reason, held };
            self.events
                .record_later(Some(about(hold)), move |recorder| recorder.record(lost));
        }
    }

    /// Tells of a renewal, and how long after its first try it came.
    pub(super) fn record_renewed(&self, hold: &Hold, late: Duration) {
        if self.events.are_wanted() {
            let renewed = What::Renewed { late };
            self.events
                .record_later(Some(about(hold)), move |recorder| recorder.record(renewed));
        }
    }

    /// Tells that a guard has ended its hold.
    pub(super) fn record_released(&self, hold: &Hold, now: Instant) {
        self.counters.record_released();
        let held = now.saturating_duration_since(hold.since);
        tracing::debug!(key = %hold.key().shortened(), ?held, "a lock is released");
        self.events
            .record(Some(subject(hold)), What::Released { held });
    }
}

fn subject(hold: &Hold) -> Subject<'_> {
    Subject::new(hold.key(), hold.parts().len() - 1, hold.kind)
}

fn about(hold: &Hold) -> About {
    About {
        key: hold.key().clone(),
        more_keys: hold.parts().len() - 1,
        kind: hold.kind,
    }
}
