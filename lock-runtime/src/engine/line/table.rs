//! The lines of all keys, and what stands in each.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use foldhash::fast::RandomState;
use lock_store::LockKey;
use tokio::sync::Notify;

use super::Signal;

/// So many lines may be empty, or twice as many as are not.
const EMPTY_LINES: usize = 256;

/// For so many waiters there is room in an empty line.
const EMPTY_PLACES: usize = 64;

/// The lines, and some empty ones for the next request of their keys.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) lines: HashMap<LockKey, Arc<Line>, RandomState>,
    /// After so many requests, the empty ones are forgotten.
    sweep_in: usize,
}

/// One key's line. It is in the table as long as there is anything in it; whatever enters an empty one does so under the
/// table's lock, which is taken before the line's own.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) key: LockKey,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) places: Places,
    /// Releases under way in the background.
    pub(super) releasing: usize,
    /// Holds of this process which may be passed on.
    pub(super) turns: usize,
    /// To whom the last one was passed on, and when.
    pub(super) passed: Option<(u64, Instant)>,
    /// For those who wait until no release is under way.
    pub(super) settled: Option<Arc<Notify>>,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) signal: Arc<Signal>,
    /// Whether it takes what is passed on inside the process: it has not asked the store yet.
    pub(super) willing: bool,
    /// It did not take what was passed on to it, and has not been polled since.
    pub(super) asleep: bool,
}

/// Requests by their tickets, which rise.
#[derive(Debug, Default)]
pub(super) struct Places(pub(super) VecDeque<(u64, Waiting)>);

impl Places {
    fn find(&self, ticket: u64) -> Option<usize> {
        self.0.binary_search_by_key(&ticket, |(one, _)| *one).ok()
    }

    pub(super) fn get_mut(&mut self, ticket: u64) -> Option<&mut Waiting> {
        let at = self.find(ticket)?;
        self.0.get_mut(at).map(|(_, one)| one)
    }

    /// At once at either end, where nearly everybody leaves; in the middle, those on the shorter side move up.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<Waiting> {
        let at = self.find(ticket)?;
        let removed = self.0.remove(at);
        if self.0.is_empty() {
            self.0.shrink_to(EMPTY_PLACES);
        }
        removed.map(|(_, one)| one)
    }

    /// The first request that is not asleep.
    fn first(&self) -> Option<&(u64, Waiting)> {
        self.0.iter().find(|(_, one)| !one.asleep)
    }
}

impl Default for Table {
    fn default() -> Self {
        Self {
            lines: HashMap::default(),
            sweep_in: EMPTY_LINES,
        }
    }
}

impl Table {
    /// The key's line, with something new in it.
    pub(super) fn enter(&mut self, key: &LockKey, change: impl FnOnce(&mut State)) -> Arc<Line> {
        self.sweep();
        if let Some(line) = self.lines.get(key) {
            change(&mut line.state());
            return Arc::clone(line);
        }
        let mut state = State::default();
        change(&mut state);
        let (key, state) = (key.clone(), Mutex::new(state));
        let line = Arc::new(Line { key, state });
        self.lines.insert(line.key.clone(), Arc::clone(&line));
        line
    }

    /// Forgets empty lines now and then, if there are many: so seldom that a request pays for no more than one.
    fn sweep(&mut self) {
        self.sweep_in -= 1;
        if self.sweep_in > 0 {
            return;
        }
        if self.lines.len() > EMPTY_LINES {
            self.lines.retain(|_, line| !line.state().is_empty());
            self.lines.shrink_to(EMPTY_LINES.max(2 * self.lines.len()));
        }
        self.sweep_in = EMPTY_LINES.max(2 * self.lines.len());
    }
}

impl State {
    /// The first request that is not asleep.
    pub(super) fn first(&self) -> Option<(u64, &Waiting)> {
        self.places.first().map(|(ticket, one)| (*ticket, one))
    }

    pub(super) fn is_first(&self, ticket: u64) -> bool {
        self.releasing == 0 && self.first().is_some_and(|(first, _)| first == ticket)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.0.is_empty() && self.releasing == 0 && self.turns == 0
    }
}

impl Line {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
