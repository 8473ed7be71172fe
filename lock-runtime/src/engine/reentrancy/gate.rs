//! The nested gate: nested calls use a hold one at a time, or several together that only read.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Where the nested requests of one guard wait for the right to use its hold.
pub(crate) type NestedGate = Arc<RwLock<()>>;

/// A nested call may use the hold until this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "they are there to be dropped")]
pub(crate) enum NestedPermit {
    Shared(OwnedRwLockReadGuard<()>),
    Alone(OwnedRwLockWriteGuard<()>),
}

impl NestedPermit {
    /// Waits until no other nested call uses the hold in a way that excludes this one.
    pub(super) async fn wait(gate: &NestedGate, shared: bool) -> Self {
        let gate = Arc::clone(gate);
        if shared {
            Self::Shared(gate.read_owned().await)
        } else {
            Self::Alone(gate.write_owned().await)
        }
    }

    /// The same without waiting.
    pub(super) fn now(gate: &NestedGate, shared: bool) -> Option<Self> {
        let gate = Arc::clone(gate);
        if shared {
            gate.try_read_owned().ok().map(Self::Shared)
        } else {
            gate.try_write_owned().ok().map(Self::Alone)
        }
    }
}
