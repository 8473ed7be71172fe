//! Errors made by hand: by the engine, and by services that test their own handling of errors.

use std::time::Duration;

use lock_store::{KeyFault, LockKey, StoreError, StoreErrorKind};

use super::{HeldBy, KeyKind, LockError, LostReason};

/// Errors for the tests of your own handling. To test code under a lock, use
/// [`LockClient::in_memory`](crate::LockClient::in_memory).
///
/// # Examples
/// ```
/// use lock_runtime::{LockError, LostReason};
///
/// let error = LockError::lost_after_body("order:7", LostReason::Gone);
/// assert!(error.is_lost() && error.body_ended());
/// ```
impl LockError {
    /// A [`Busy`](Self::Busy) that has waited for no time, without the holder's name.
    #[must_use]
    pub fn busy(key: impl Into<LockKey>) -> Self {
        Self::Busy {
            key: key.into(),
            held_by: HeldBy::Unknown,
            waited: Duration::ZERO,
        }
    }

    /// A [`RateLimited`](Self::RateLimited) that passes after this time.
    #[must_use]
    pub fn rate_limited(key: impl Into<LockKey>, retry_after: Duration) -> Self {
        Self::RateLimited {
            key: key.into(),
            retry_after,
        }
    }

    /// A [`Lost`](Self::Lost) whose body was stopped.
    #[must_use]
    pub fn lost(key: impl Into<LockKey>, reason: LostReason) -> Self {
        Self::Lost {
            key: key.into(),
            reason,
            body_ended: false,
        }
    }

    /// A [`Lost`](Self::Lost) whose [body had ended](Self::body_ended).
    #[must_use]
    pub fn lost_after_body(key: impl Into<LockKey>, reason: LostReason) -> Self {
        Self::Lost {
            key: key.into(),
            reason,
            body_ended: true,
        }
    }

    /// An [`Unavailable`](Self::Unavailable) without a key, with what the store said.
    #[must_use]
    pub fn unavailable(kind: StoreErrorKind, text: impl Into<Box<str>>) -> Self {
        Self::Unavailable {
            key: None,
            source: StoreError::new(kind, text),
        }
    }

    /// A [`LatchClosed`](Self::LatchClosed) after no time.
    #[must_use]
    pub fn latch_closed(key: impl Into<LockKey>) -> Self {
        Self::LatchClosed {
            key: key.into(),
            waited: Duration::ZERO,
        }
    }

    /// A [`LatchNotSet`](Self::LatchNotSet).
    #[must_use]
    pub fn latch_not_set(key: impl Into<LockKey>) -> Self {
        Self::LatchNotSet { key: key.into() }
    }

    /// A [`WouldDeadlock`](Self::WouldDeadlock).
    #[must_use]
    pub fn would_deadlock(key: impl Into<LockKey>) -> Self {
        Self::WouldDeadlock { key: key.into() }
    }

    /// An [`InvalidKey`](Self::InvalidKey).
    #[must_use]
    pub fn invalid_key(key: impl Into<LockKey>, fault: KeyFault) -> Self {
        Self::InvalidKey {
            key: key.into(),
            fault,
        }
    }

    /// A [`KeyConflict`](Self::KeyConflict).
    #[must_use]
    pub fn key_conflict(key: impl Into<LockKey>, found: KeyKind) -> Self {
        Self::KeyConflict {
            key: key.into(),
            found,
        }
    }

    /// A [`Config`](Self::Config) with this message.
    #[must_use]
    pub fn config(message: impl Into<Box<str>>) -> Self {
        Self::Config {
            message: message.into(),
        }
    }
}
