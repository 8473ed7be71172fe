//! The errors that several parts of the engine give.

use lock_store::{LockKey, StoreError, StoreErrorKind};

use crate::error::LockError;

pub(super) fn unavailable(key: Option<&LockKey>, source: StoreError) -> LockError {
    LockError::Unavailable {
        key: key.cloned(),
        source,
    }
}

/// Of several locks of one hold, some renewals were not answered.
pub(super) fn unanswered() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "a part of the store did not answer",
    )
}

pub(super) fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "its answer came after the lease it granted",
    )
}

/// A reply that no store gives which keeps the contract.
pub(super) fn malformed(what: String) -> StoreError {
    let text = format!("{what}, which can't be; is there a proxy in front of it?");
    StoreError::new(StoreErrorKind::Refused, text)
}
