//! [`PassedOver`]: a waiter that nobody polls, and what it had.

use std::sync::Arc;

use lock_store::{Instant, Link, LockKey};

use super::state::{Doing, Handoff, LocalQueue, QueuedRequest};
use crate::config::LOOKS_UNTIL_PASSED_OVER;

/// The waiters that are to be passed over.
pub(super) fn late(queue: &LocalQueue, now: Instant) -> Vec<u64> {
    let mut state = queue.state.lock();
    let entries = state.entries.0.iter_mut().enumerate();
    entries
        .filter_map(|(at, (ticket, entry))| {
            let late = entry.signal.is_late(now, at == 0);
            entry.missed = if late { entry.missed + 1 } else { 0 };
            (entry.missed >= LOOKS_UNTIL_PASSED_OVER).then_some(*ticket)
        })
        .collect()
}

/// What a waiter had that nobody polled.
#[derive(Debug)]
pub(super) struct PassedOver {
    pub(super) key: LockKey,
    /// A task of this process had passed its hold on to it.
    pub(super) handoff: Option<Handoff>,
    /// It has asked the store.
    pub(super) asked: Option<QueuedRequest>,
    /// The link of its last command, if that had no answer yet.
    pub(super) asking: Option<Link>,
}

impl PassedOver {
    /// Takes the waiter out of its queue, unless it has gone or has just got the lock.
    pub(super) fn take(queue: &Arc<LocalQueue>, ticket: u64) -> Option<Self> {
        let mut state = queue.state.lock();
        let entry = state.entries.get_mut(ticket)?;
        let (handoff, doing) = entry.signal.pass_over()?;
        let entry = state.entries.remove(ticket)?;
        let asked = !entry.willing && handoff.is_none();
        let next = state.first().map(|(_, next)| next.signal.wake_up());
        if next.is_none() {
            queue.liveness.forget();
        }
        drop(state);
        drop(next);
        Some(Self {
            key: queue.key.clone(),
            handoff,
            asked: asked.then_some(entry.request),
            asking: match doing {
                Some(Doing::Asks(_, via)) => via,
                _ => None,
            },
        })
    }
}
