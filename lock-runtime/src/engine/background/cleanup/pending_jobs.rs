//! [`PendingJobs`]: counts what the cleanup task has to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::observed::Observed;
use crate::observe::What;

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
        self.record(What::Undoing { pending });
    }

    pub(super) fn finish_one(&self) {
        let pending = self.jobs.fetch_sub(1, Ordering::Relaxed) - 1;
        self.record(What::Undone { pending });
    }

    fn record(&self, what: What<'static>) {
        let events = &self.observed.events;
        events.record_later(None, move |recorder| recorder.record(what));
    }
}
