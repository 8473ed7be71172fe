//! How a hold ends, and what it leaves.

use std::time::{Duration, Instant};

use super::Hold;
use crate::engine::turn::Baton;
use crate::error::LostReason;

/// The hold was released.
#[derive(Debug)]
pub(in crate::engine) struct Ended;

/// What a hold leaves when it ends.
#[derive(Debug)]
pub(in crate::engine) struct Ending {
    /// Why it was lost, if it was.
    pub(in crate::engine) lost: Option<LostReason>,
    /// When the watchdog would act on it next.
    pub(in crate::engine) watched_at: Option<Instant>,
    /// How long its key stays taken.
    pub(in crate::engine) keep: Duration,
    /// What another task of this process can go on with: nothing if the key stays taken, if the hold can't be trusted any
    /// more, or if an undo under way could end it.
    pub(in crate::engine) baton: Option<Baton>,
}

impl Hold {
    /// Ends the hold, the first time. From then on it is not lost any more, and not watched anew.
    pub(in crate::engine) fn end(&self, now: Instant) -> Option<Ending> {
        let mut state = self.state();
        if std::mem::replace(&mut state.released, true) {
            return None;
        }
        let keep = state
            .keep_until
            .map(|until| until.saturating_duration_since(now));
        let keep = keep.unwrap_or_default();
        let usable =
            state.lost.is_none() && now < state.deadline && keep.is_zero() && self.late.is_empty();
        let (turn, deadline) = (state.turn.take(), state.deadline);
        let (lost, watched_at) = (state.lost, state.watched_at);
        // Without a turn that can be passed on, its end wakes who waits, which is not done under the lock.
        drop(state);
        let turn = turn.filter(|_| usable);
        Some(Ending {
            lost,
            watched_at,
            keep,
            baton: turn.map(|turn| turn.pass_on(deadline)),
        })
    }
}
