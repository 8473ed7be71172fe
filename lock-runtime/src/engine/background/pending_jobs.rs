//! [`PendingJobs`]: counts what the undo task has to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::observed::Observed;
use crate::observe::{Recorder, What};

/// How many jobs are not done, and who is told.
#[derive(Debug)]
pub(super) struct PendingJobs {
    jobs: AtomicUsize,
    observed: Arc<Observed>,
}

impl PendingJobs {
    pub(super) fn new(observed: Arc<Observed>) -> Self {
        Self {
            jobs: AtomicUsize::new(0),
            observed,
        }
    }

    pub(super) fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    pub(super) fn add_one(&self) {
        let pending = self.jobs.fetch_add(1, Ordering::Relaxed) + 1;
        let undoing = move || What::Undoing { pending };
        self.record(move |recorder| recorder.record(undoing()));
    }

    pub(super) fn finish_one(&self) {
        let pending = self.jobs.fetch_sub(1, Ordering::Relaxed) - 1;
        let undone = move || What::Undone { pending };
        self.record(move |recorder| recorder.record(undone()));
    }

    fn record(&self, what: impl FnOnce(Recorder<'_>) + Send + 'static) {
        self.observed.events.record_later(None, what);
    }
}
