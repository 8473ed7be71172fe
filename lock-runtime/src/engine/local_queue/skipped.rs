//! [`Skipped`]: a waiter that nobody polls, and what it had.

use std::sync::Arc;

use lock_store::{Instant, LockKey, WakeUp};

use super::signal::Taken;
use super::state::{LocalQueue, QueuedRequest};
use crate::config::{CALLED_FOR_EACH, LOOKS_UNTIL_SKIPPED};

/// The waiters that are to be skipped.
pub(super) fn overdue(queue: &LocalQueue, now: Instant) -> Vec<u64> {
    let mut state = queue.state.lock();
    let entries = state.entries.0.iter_mut().enumerate();
    entries
        .filter_map(|(at, (ticket, entry))| {
            let overdue = entry.signal.is_overdue(now, at == 0);
            entry.missed = if overdue { entry.missed + 1 } else { 0 };
            (entry.missed >= LOOKS_UNTIL_SKIPPED).then_some(*ticket)
        })
        .collect()
}

/// After skipped requests there may be more: calls some of those behind them. The groups grow, so
/// that a row of unpolled requests does not cost the time of each.
pub(super) fn call_next(queue: &LocalQueue, skipped: usize) {
    let mut state = queue.state.lock();
    state.skipped += skipped;
    let group = state.skipped.saturating_mul(CALLED_FOR_EACH);
    let called = state.entries.0.iter().take(group);
    let called: Vec<WakeUp> = called.map(|(_, entry)| entry.signal.call()).collect();
    drop(state);
    drop(called);
}

/// What a waiter had that nobody polled.
#[derive(Debug)]
pub(super) struct Skipped {
    pub(super) key: LockKey,
    pub(super) request: QueuedRequest,
    pub(super) had: Taken,
}

impl Skipped {
    /// Takes the waiter out of its queue, unless it has gone or has just got the lock.
    pub(super) fn take(queue: &Arc<LocalQueue>, ticket: u64) -> Option<Self> {
        let mut state = queue.state.lock();
        let entry = state.entries.get_mut(ticket)?;
        let had = entry.signal.skip()?;
        let entry = state.entries.remove(ticket)?;
        let next = state.first().map(|(_, next)| next.signal.wake_up());
        if next.is_none() {
            queue.liveness.forget();
        }
        drop(state);
        drop(next);
        // It may be polled again at this very moment.
        drop(entry.signal.wake_up());
        Some(Self {
            key: queue.key.clone(),
            request: entry.request,
            had,
        })
    }
}
