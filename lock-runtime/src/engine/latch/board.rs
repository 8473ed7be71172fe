//! Where a room's watcher writes the news down, and its visitors read them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::room::News;

/// The newest news. Whoever waits for them is told in the order in which it began to wait, which tokio's `watch` leaves
/// to chance.
#[derive(Debug, Default)]
pub(super) struct Board {
    news: Mutex<(u64, News)>,
    changed: Notify,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, (u64, News)> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `read` makes of them, and their edition.
    pub(super) fn read<T>(&self, read: impl FnOnce(&News) -> T) -> (T, u64) {
        let news = self.lock();
        (read(&news.1), news.0)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut News)) {
        let mut news = self.lock();
        news.0 += 1;
        change(&mut news.1);
        drop(news);
        self.changed.notify_waiters();
    }

    /// Waits for another edition than this.
    pub(super) async fn newer(&self, edition: u64) {
        loop {
            let changed = self.changed.notified();
            if self.lock().0 != edition {
                return;
            }
            changed.await;
        }
    }
}
