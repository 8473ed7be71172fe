//! The handoff marker: a hold of this process that may be passed on.

use std::sync::Arc;

use lock_store::LockKey;

use super::state::{HandoffMarker, LocalQueue};

impl HandoffMarker {
    pub(super) fn new(queue: &Arc<LocalQueue>) -> Self {
        queue.state.lock().tenures += 1;
        let queue = Arc::clone(queue);
        Self { queue }
    }

    pub(super) fn key(&self) -> &LockKey {
        &self.queue.key
    }
}

impl Drop for HandoffMarker {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.tenures -= 1;
        let willing = state.first().filter(|(_, first)| first.willing);
        let next = willing.map(|(_, first)| first.signal.wake_up());
        drop(state);
        drop(next);
    }
}
