//! What is still to be run.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::trial::Trial;

/// Trials in their order, the longest programs first.
pub(crate) struct Queue<'p> {
    trials: Vec<Trial<'p>>,
    begun: AtomicUsize,
}

impl<'p> Queue<'p> {
    pub(crate) fn new(mut trials: Vec<Trial<'p>>) -> Self {
        trials.sort_by_key(|trial| !trial.program.is_long());
        Self {
            trials,
            begun: AtomicUsize::new(0),
        }
    }

    /// The next trial, or `None` at the end.
    pub(crate) fn next(&self) -> Option<&Trial<'p>> {
        self.trials.get(self.begun.fetch_add(1, Ordering::Relaxed))
    }
}
