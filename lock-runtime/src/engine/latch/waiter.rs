//! One task that waits for a latch.

use std::sync::Arc;

use lock_store::LockKey;

use super::view::{LatchView, Refusal};
use super::watch::{LatchWatch, LatchWatches};
use crate::engine::errors::unavailable;
use crate::engine::liveness::{Failing, Liveness};
use crate::error::{KeyKind, LockError};

/// A task that waits. When the last one is dropped, the watcher ends.
#[derive(Debug)]
pub(super) struct LatchWaiter {
    watches: Arc<LatchWatches>,
    key: LockKey,
    number: u64,
    watch: Arc<LatchWatch>,
    /// What it has read last.
    edition: u64,
}

/// What a waiter knows.
pub(super) enum LatchAnswer {
    /// The store has not been asked on its behalf, or has not answered yet.
    Unasked,
    /// The latch is not open; or looks fail.
    Wait(Option<Failing>),
    Over(Result<(), LockError>),
}

impl LatchWaiter {
    /// One more. If it is the first of its latch, `start` must see to the watcher.
    pub(super) fn enter(
        watches: &Arc<LatchWatches>,
        key: &LockKey,
        start: impl FnOnce(&Arc<LatchWatch>),
    ) -> Self {
        let (number, watch) = watches.enter(key, start);
        Self {
            watches: Arc::clone(watches),
            key: key.clone(),
            number,
            watch,
            edition: 0,
        }
    }

    /// What looks at the latch have come to.
    pub(super) fn liveness(&self) -> &Arc<Liveness> {
        &self.watch.liveness
    }

    pub(super) fn key(&self) -> &LockKey {
        &self.key
    }

    /// What is known now. A newer view ends the next [`wait_for_change`](Self::wait_for_change).
    pub(super) fn known(&mut self) -> LatchAnswer {
        let (known, edition) = self.watch.view.read(|view| self.read(view));
        self.edition = edition;
        known
    }

    fn read(&self, view: &LatchView) -> LatchAnswer {
        let (number, key) = (self.number, || self.key.clone());
        if number <= view.opened {
            return LatchAnswer::Over(Ok(()));
        }
        if number <= view.lost {
            return LatchAnswer::Over(Err(LockError::latch_not_set(key())));
        }
        if number <= view.refused.0 {
            return LatchAnswer::Over(Err(match &view.refused.1 {
                Some(Refusal::Error(error)) => unavailable(Some(&self.key), error.clone()),
                _ => LockError::key_conflict(key(), KeyKind::Unknown),
            }));
        }
        let failed = view.failed.as_ref();
        match failed.filter(|look| number <= look.asked) {
            Some(look) => LatchAnswer::Wait(Some(look.failing.clone())),
            None if number <= view.answered => LatchAnswer::Wait(None),
            None => LatchAnswer::Unasked,
        }
    }

    /// Waits until there is a newer view than the one that was read last.
    pub(super) async fn wait_for_change(&self) {
        self.watch.view.newer(self.edition).await;
    }
}

impl Drop for LatchWaiter {
    fn drop(&mut self) {
        self.watches.leave(&self.key);
    }
}
