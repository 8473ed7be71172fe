//! The errors that several parts of the engine give.

use std::time::Duration;

use lock_store::{LockKey, StoreError, StoreErrorKind};

use crate::error::{KeyKind, LockError};

pub(super) fn unavailable(key: Option<&LockKey>, source: StoreError) -> LockError {
    if source.kind() == StoreErrorKind::Foreign {
        // Locks stand below it.
        let what = "another program's data where the base of the fencing tokens belongs,";
        return LockError::key_conflict(source.detail(), KeyKind::OtherLayout(what));
    }
    LockError::Unavailable {
        key: key.cloned(),
        source,
    }
}

/// Of several locks of one hold, some renewals were refused or not answered.
pub(super) fn unanswered() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "a part of the store did not answer, or refused to renew one of the keys",
    )
}

/// A grant came after the end of its own lease.
pub(super) fn too_late(lease: Duration) -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        format!(
            "the lease of {lease:?} that it granted had ended when its answer was read; \
             use a longer lease"
        ),
    )
}

/// Of several locks, the first were lost while the others were waited for.
pub(super) fn too_short(lease: Duration) -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        format!(
            "leases of {lease:?} ended before all of the locks were there; \
             use a longer lease"
        ),
    )
}

/// A grant brought no fencing token although one was asked for.
pub(super) fn no_token() -> StoreError {
    StoreError::new(
        StoreErrorKind::Refused,
        "it granted the lock without the fencing token that was asked for",
    )
}

/// A call that had the time which the store had just told was refused for its time.
pub(super) fn untimely() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "a call reached it more than a minute late, or its clock jumps",
    )
}

/// A reply that no store gives which keeps the contract.
pub(super) fn malformed(what: String) -> StoreError {
    let text = format!("{what}, which can't be; is there a proxy in front of it?");
    StoreError::new(StoreErrorKind::Refused, text)
}
