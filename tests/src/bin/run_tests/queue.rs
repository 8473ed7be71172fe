//! What is still to be run.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::trial::Trial;

/// Trials in their order, the longest programs first. Trials of some programs never run side by
/// side.
pub(crate) struct Queue<'p> {
    trials: Vec<Trial<'p>>,
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    /// The numbers of the trials that are left.
    left: Vec<usize>,
    /// Programs that run one at a time, and one of whose tests is running.
    busy: BTreeSet<String>,
}

impl<'p> Queue<'p> {
    pub(crate) fn new(mut trials: Vec<Trial<'p>>) -> Self {
        trials.sort_by_key(|trial| !trial.program.is_long());
        let state = State {
            left: (0..trials.len()).collect(),
            busy: BTreeSet::new(),
        };
        Self {
            trials,
            state: Mutex::new(state),
            freed: Condvar::new(),
        }
    }

    /// The next trial that may run, or `None` at the end.
    pub(crate) fn next(&self) -> Option<Turn<'_, 'p>> {
        let mut state = self.state();
        loop {
            if state.left.is_empty() {
                return None;
            }
            let may_run = |number: &usize| {
                let program = self.trials[*number].program;
                !(program.is_one_at_a_time() && state.busy.contains(&program.name()))
            };
            if let Some(at) = state.left.iter().position(may_run) {
                let number = state.left.remove(at);
                let program = self.trials[number].program;
                if program.is_one_at_a_time() {
                    state.busy.insert(program.name());
                }
                return Some(Turn {
                    queue: self,
                    number,
                });
            }
            let freed = self.freed.wait(state);
            state = freed.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A trial that is running.
pub(crate) struct Turn<'q, 'p> {
    queue: &'q Queue<'p>,
    number: usize,
}

impl<'q, 'p> Turn<'q, 'p> {
    pub(crate) fn trial(&self) -> &'q Trial<'p> {
        &self.queue.trials[self.number]
    }
}

impl Drop for Turn<'_, '_> {
    fn drop(&mut self) {
        let program = self.trial().program.name();
        self.queue.state().busy.remove(&program);
        self.queue.freed.notify_all();
    }
}
