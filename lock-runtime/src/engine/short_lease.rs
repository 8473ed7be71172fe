//! [`ShortLease`]: a lease that one slow answer ends is told once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_store::LockKey;

/// Whether it was told.
#[derive(Debug, Default)]
pub(super) struct ShortLease(AtomicBool);

impl ShortLease {
    /// Warns, the first time, of a lease that is over before a command is given up.
    pub(super) fn note(&self, keys: &[LockKey], lease: Duration, command_timeout: Duration) {
        if lease >= command_timeout || self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        let key = keys
            .first()
            .map(|key| tracing::field::display(key.shortened()));
        tracing::warn!(
            key,
            ?lease,
            ?command_timeout,
            "a lease is shorter than the command timeout, so one slow answer of the store loses \
             the lock; give a longer lease, or a shorter `command_timeout`"
        );
    }
}
