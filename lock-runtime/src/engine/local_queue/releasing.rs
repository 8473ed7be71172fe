//! A release under way, behind which later requests of this process wait.

use std::sync::Arc;

use super::state::LocalQueue;

/// A release of the key is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Releasing {
    pub(super) queue: Arc<LocalQueue>,
}

impl Drop for Releasing {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
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
