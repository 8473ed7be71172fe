//! [`OtherLimits`]: semaphores for which another service says another number of permits.

use std::collections::BTreeSet;

use lock_store::{LockKey, Mutex};

/// The number of semaphores that are remembered. A client that meets more has logged enough.
const REMEMBERED: usize = 100;

/// The semaphores whose other limit was logged.
#[derive(Debug, Default)]
pub(super) struct OtherLimits {
    told: Mutex<BTreeSet<LockKey>>,
}

impl OtherLimits {
    /// Says in the log that others have another number for this semaphore. Two versions of a
    /// service may do so while one replaces the other. A number that stays is a mistake.
    pub(super) fn warn_once(&self, key: &LockKey, ours: u32, theirs: u32) {
        let is_new = {
            let mut told = self.told.lock();
            told.len() < REMEMBERED && told.insert(key.clone())
        };
        if is_new {
            tracing::warn!(
                key = %key.shortened(),
                ours,
                theirs,
                "others have another number of permits for this semaphore; give the same number \
                 everywhere"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_this_many_are_remembered() {
        let limits = OtherLimits::default();
        for number in 0..REMEMBERED + 5 {
            limits.warn_once(&LockKey::from(number.to_string()), 1, 2);
        }
        assert_eq!(limits.told.lock().len(), REMEMBERED);
    }
}
