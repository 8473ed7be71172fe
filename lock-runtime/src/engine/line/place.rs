//! What stands in a line, or stops it, and leaves it when it is dropped.

use std::sync::Arc;

use super::{Line, Lines, Signal};
use crate::engine::turn::Baton;
use crate::key::LockKey;

/// A request's place; dropping it lets the next one move up.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) lines: Arc<Lines>,
    pub(super) line: Arc<Line>,
    pub(super) ticket: u64,
    pub(crate) signal: Arc<Signal>,
}

impl Place {
    /// Whether this is the first request of its key, and no release of it is under way. Whoever asks is awake.
    pub(crate) fn is_first(&self) -> bool {
        let mut state = self.line.state();
        if let Some(place) = state.places.get_mut(&self.ticket) {
            place.asleep = false;
        }
        let first = state.first().map(|(first, _)| first);
        state.releasing == 0 && first == Some(self.ticket)
    }

    /// Whether another task of this process has a hold that may be passed on to this request.
    pub(crate) fn looks_on(&self) -> bool {
        let state = self.line.state();
        let willing = state
            .places
            .get(&self.ticket)
            .is_some_and(|one| one.willing);
        state.turns > 0 && willing
    }

    /// Whether other requests of this process wait behind this one.
    pub(crate) fn has_others_behind(&self) -> bool {
        self.line.state().places.len() > 1
    }

    /// As [`Lines::mark`].
    pub(crate) fn mark(&self) -> Mark {
        self.line.state().turns += 1;
        let (lines, line) = (Arc::clone(&self.lines), Arc::clone(&self.line));
        Mark { lines, line }
    }

    /// From now on the request asks the store, and nothing is passed on to it; unless that has just happened.
    pub(crate) fn asks_the_store(&self) -> Option<Baton> {
        let mut state = self.line.state();
        state.places.get_mut(&self.ticket)?.willing = false;
        self.signal.take_baton()
    }

    /// Leaves the line, and gives back what was passed on to the request and not used.
    pub(crate) fn leave(&self) -> Option<Baton> {
        let mut state = self.line.state();
        state.places.remove(&self.ticket)?;
        let next = state.first().map(|(_, next)| next.signal.wake_up());
        let baton = self.signal.take_baton();
        let is_empty = state.is_empty();
        // Tasks are woken outside of the lock: an executor may run them at once.
        drop(state);
        if is_empty {
            self.lines.remove_if_empty(&self.line);
        }
        drop(next);
        baton
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let baton = self.leave();
        debug_assert!(
            baton.is_none(),
            "whoever leaves the line gives back the hold"
        );
    }
}

/// The process has a hold of the key that may be passed on. When that ends, the first request asks the store.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(super) lines: Arc<Lines>,
    pub(super) line: Arc<Line>,
}

impl Mark {
    pub(crate) fn key(&self) -> &LockKey {
        &self.line.key
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut state = self.line.state();
        state.turns -= 1;
        let willing = state.first().filter(|(_, first)| first.willing);
        let next = willing.map(|(_, first)| first.signal.wake_up());
        let is_empty = state.is_empty();
        drop(state);
        if is_empty {
            self.lines.remove_if_empty(&self.line);
        }
        drop(next);
    }
}

/// A release of the key is under way.
#[derive(Debug)]
pub(crate) struct Releasing {
    pub(super) lines: Arc<Lines>,
    pub(super) line: Arc<Line>,
}

impl Drop for Releasing {
    fn drop(&mut self) {
        let mut state = self.line.state();
        state.releasing -= 1;
        let settled = (state.releasing == 0).then(|| {
            let first = state.first().map(|(_, first)| first.signal.wake_up());
            (state.settled.take(), first)
        });
        let is_empty = state.is_empty();
        drop(state);
        if is_empty {
            self.lines.remove_if_empty(&self.line);
        }
        if let Some((settled, first)) = settled {
            if let Some(settled) = settled {
                settled.notify_waiters();
            }
            drop(first);
        }
    }
}
