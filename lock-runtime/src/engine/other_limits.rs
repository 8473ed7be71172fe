//! [`OtherLimits`]: semaphores for which another service says another number of permits.

use std::collections::BTreeSet;

use lock_store::{LockKey, Mutex};

use super::Engine;

/// So many semaphores are remembered: a client that meets more has been told often enough.
const REMEMBERED: usize = 100;

/// Those that were told of.
#[derive(Debug, Default)]
pub(super) struct OtherLimits {
    told: Mutex<BTreeSet<LockKey>>,
}

impl OtherLimits {
    fn is_new(&self, key: &LockKey) -> bool {
        let mut told = self.told.lock();
        told.len() < REMEMBERED && told.insert(key.clone())
    }
}

impl Engine {
    /// Two versions of a service may say different numbers while one replaces the other. One that
    /// stays is a mistake.
    pub(super) fn met_limit(&self, key: &LockKey, ours: u32, theirs: u32) {
        if self.other_limits.is_new(key) {
            tracing::warn!(
                key = %key.shortened(),
                ours,
                theirs,
                "others say another number of permits for this semaphore; each request is admitted \
                 by its own number"
            );
        }
    }
}
