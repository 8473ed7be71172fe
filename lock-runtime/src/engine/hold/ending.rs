//! The end of a hold, and what is left to do then.

use std::time::Duration;

use lock_store::Instant;

use super::Hold;
use crate::engine::local_queue::Handoff;
use crate::error::LostReason;

/// What a hold leaves when it ends.
#[derive(Debug)]
pub(in crate::engine) struct Ending {
    /// Why it was lost, if it was.
    pub(in crate::engine) lost: Option<LostReason>,
    /// When the watchdog would act on it next.
    pub(in crate::engine) watched_at: Option<Instant>,
    /// How long its key stays taken.
    pub(in crate::engine) keep: Duration,
    /// The hold for another task of this process. There is none if the key stays taken, if the hold
    /// can't be trusted any more, or if an undo under way could end it.
    pub(in crate::engine) handoff: Option<Handoff>,
}

impl Hold {
    /// Ends the hold, the first time. From then on it can't be lost, and is not watched anew.
    pub(in crate::engine) fn end(&self, now: Instant) -> Option<Ending> {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.released, true) {
            return None;
        }
        let keep = state
            .keep_until
            .map(|until| until.saturating_duration_since(now));
        let keep = keep.unwrap_or_default();
        let usable = state.lost.is_none()
            && now < state.deadline
            && keep.is_zero()
            && self.pending_outcomes.is_empty();
        let (tenure, deadline) = (state.tenure.take(), state.deadline);
        let (lost, watched_at) = (state.lost, state.watched_at);
        // A tenure that can't be handed off ends here and wakes waiters. That is not done under the
        // lock.
        drop(state);
        let tenure = tenure.filter(|_| usable);
        Some(Ending {
            lost,
            watched_at,
            keep,
            handoff: tenure.map(|tenure| tenure.into_handoff(deadline)),
        })
    }

    /// Ends a hold that becomes a part of another hold of this client. False if it was lost or
    /// released before.
    pub(in crate::engine) fn become_part(&self) -> bool {
        let mut state = self.state.lock();
        let ended = std::mem::replace(&mut state.released, true);
        !ended && state.lost.is_none()
    }
}
