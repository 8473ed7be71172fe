//! The known state of one latch: its watcher writes it, and the tasks that wait read it.

use lock_store::{Mutex, StoreError};
use tokio::sync::Notify;

use crate::engine::liveness::Failing;

/// The newest view. Tasks that wait for a newer one are told in the order in which they began to
/// wait. `tokio::sync::watch` leaves the order to chance: a seed of the simulation would not run
/// the same way twice.
#[derive(Debug, Default)]
pub(super) struct SharedView {
    view: Mutex<(u64, LatchView)>,
    changed: Notify,
}

impl SharedView {
    /// What `read` makes of it, and its edition.
    pub(super) fn read<T>(&self, read: impl FnOnce(&LatchView) -> T) -> (T, u64) {
        let view = self.view.lock();
        (read(&view.1), view.0)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut LatchView)) {
        let mut view = self.view.lock();
        view.0 += 1;
        change(&mut view.1);
        drop(view);
        self.changed.notify_waiters();
    }

    /// Waits for another edition than this.
    pub(super) async fn newer(&self, edition: u64) {
        loop {
            let changed = self.changed.notified();
            if self.view.lock().0 != edition {
                return;
            }
            changed.await;
        }
    }
}

/// What the watcher knows. Each number is the last waiter that it is about. A later waiter knows
/// nothing yet: only a look that was sent after it came tells it the state of the latch.
#[derive(Debug, Default)]
pub(super) struct LatchView {
    /// The store has answered a look for these.
    pub(super) answered: u64,
    /// For these the latch has opened.
    pub(super) opened: u64,
    /// These waiters, or earlier ones, saw a latch that was gone before it opened.
    pub(super) lost: u64,
    /// These were refused, with an error that waiting does not change.
    pub(super) refused: (u64, Option<Refusal>),
    pub(super) failed: Option<FailedLook>,
}

/// Why no waiter need wait.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Conflict,
    Error(StoreError),
}

#[derive(Debug)]
pub(super) struct FailedLook {
    /// One was sent for these.
    pub(super) asked: u64,
    pub(super) failures: u32,
    pub(super) failing: Failing,
}

impl LatchView {
    /// The last waiter for which there is nothing more to find out.
    pub(super) fn settled(&self) -> u64 {
        self.opened.max(self.lost).max(self.refused.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_waiter_of_whom_all_is_known_saw_it_open_or_gone_or_was_refused() {
        for (opened, lost, refused, settled) in [
            (0, 0, 0, 0),
            (3, 1, 2, 3),
            (1, 3, 2, 3),
            (1, 2, 3, 3),
            (2, 2, 0, 2),
        ] {
            let view = LatchView {
                opened,
                lost,
                refused: (refused, None),
                ..LatchView::default()
            };
            assert_eq!(view.settled(), settled);
        }
    }
}
