//! What stands in a line, or stops it, and leaves it when it is dropped.

use std::sync::Arc;

use lock_store::LockKey;

use super::{Line, Signal};
use crate::engine::turn::Baton;

/// A request's place; dropping it lets the next one move up.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) line: Arc<Line>,
    pub(super) ticket: u64,
    pub(crate) signal: Arc<Signal>,
}

/// How a request stands in its line.
pub(crate) struct Standing {
    /// It is the first of its key, and no release of that is under way.
    pub(crate) is_first: bool,
    /// Another task of this process has a hold that may be passed on to it.
    pub(crate) looks_on: bool,
}

impl Place {
    /// How it stands. Whoever asks is awake.
    pub(crate) fn look(&self) -> Standing {
        let mut state = self.line.state();
        let turns = state.turns;
        let place = state.places.get_mut(self.ticket);
        let looks_on = place.is_some_and(|place| {
            place.asleep = false;
            turns > 0 && place.willing
        });
        Standing {
            is_first: state.is_first(self.ticket),
            looks_on,
        }
    }

    /// Whether other requests of this process wait behind this one.
    pub(crate) fn has_others_behind(&self) -> bool {
        self.line.state().places.0.len() > 1
    }

    /// As [`Lines::mark`].
    pub(crate) fn mark(&self) -> Mark {
        self.line.state().turns += 1;
        let line = Arc::clone(&self.line);
        Mark { line }
    }

    /// From now on the request asks the store, and nothing is passed on to it; unless that has just happened.
    pub(crate) fn asks_the_store(&self) -> Option<Baton> {
        let mut state = self.line.state();
        state.places.get_mut(self.ticket)?.willing = false;
        self.signal.take_baton()
    }

    /// Leaves the line, and gives back what was passed on to the request and not used.
    pub(crate) fn leave(&self) -> Option<Baton> {
        let mut state = self.line.state();
        state.places.remove(self.ticket)?;
        let next = state.first().map(|(_, next)| next.signal.wake_up());
        let baton = self.signal.take_baton();
        // Tasks are woken outside of the lock: an executor may run them at once.
        drop(state);
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
        drop(state);
        drop(next);
    }
}

/// A release of the key is under way.
#[derive(Debug)]
pub(crate) struct Releasing {
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
        drop(state);
        if let Some((settled, first)) = settled {
            if let Some(settled) = settled {
                settled.notify_waiters();
            }
            drop(first);
        }
    }
}
