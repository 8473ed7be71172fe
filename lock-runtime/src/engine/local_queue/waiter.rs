//! A request in its key's local queue.

use std::sync::Arc;

use super::state::{Handoff, HandoffMarker, LocalQueue, Signal};
use crate::engine::liveness::key::KeyLiveness;

/// A request's place in the queue; dropping it lets the next waiter move up.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(super) queue: Arc<LocalQueue>,
    pub(super) ticket: u64,
    pub(crate) signal: Arc<Signal>,
}

/// How a waiter stands in its queue.
pub(crate) struct LocalStanding {
    /// It is the first of its key, and no release of that key is under way.
    pub(crate) is_first: bool,
    /// Another task of this process has a hold that may be handed off to it.
    pub(crate) may_get_handoff: bool,
}

impl Waiter {
    pub(crate) fn standing(&self) -> LocalStanding {
        let mut state = self.queue.state.lock();
        let tenures = state.tenures;
        let entry = state.entries.get_mut(self.ticket);
        let may_get_handoff = entry.is_some_and(|entry| tenures > 0 && entry.willing);
        LocalStanding {
            is_first: state.is_first(self.ticket),
            may_get_handoff,
        }
    }

    /// Whether no other request of this process stands before it.
    pub(crate) fn is_at_front(&self) -> bool {
        let state = self.queue.state.lock();
        state
            .first()
            .is_some_and(|(first, _)| *first == self.ticket)
    }

    /// What the store has said to those that wait for the key.
    pub(crate) fn liveness(&self) -> &KeyLiveness {
        &self.queue.liveness
    }

    /// The queue, for what goes on without the waiter.
    pub(crate) fn queue(&self) -> &Arc<LocalQueue> {
        &self.queue
    }

    /// Whether other requests of this process wait behind this one.
    pub(crate) fn has_others_behind(&self) -> bool {
        self.queue.state.lock().entries.0.len() > 1
    }

    /// How many requests of this process stand before this one.
    pub(crate) fn ahead(&self) -> usize {
        let state = self.queue.state.lock();
        let mut tickets = state.entries.0.iter().map(|(ticket, _)| *ticket);
        tickets
            .position(|ticket| ticket == self.ticket)
            .unwrap_or(0)
    }

    /// A marker of this waiter's queue, without a look into the table.
    pub(crate) fn marker(&self) -> HandoffMarker {
        HandoffMarker::new(&self.queue)
    }

    /// From now on the request gets no handoff and asks the store. Returns one that came before.
    pub(crate) fn decline_handoffs(&self) -> Option<Handoff> {
        let mut state = self.queue.state.lock();
        state.entries.get_mut(self.ticket)?.willing = false;
        self.signal.take_handoff()
    }

    /// Leaves the queue, and gives back a handoff that the request has not used.
    pub(crate) fn leave(&self) -> Option<Handoff> {
        let mut state = self.queue.state.lock();
        state.entries.remove(self.ticket)?;
        state.skipped = 0;
        let next = state.first().map(|(_, next)| next.signal.wake_up());
        if next.is_none() {
            self.queue.liveness.forget();
        }
        let handoff = self.signal.take_handoff();
        // Tasks are woken outside of the lock: an executor may run them at once.
        drop(state);
        drop(next);
        handoff
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let handoff = self.leave();
        debug_assert!(
            handoff.is_none(),
            "a request that leaves the queue gives its handoff back"
        );
    }
}
