//! [`LockError`]: everything that can keep a caller from its lock, told apart.

use std::fmt;
use std::time::Duration;

use lock_store::{ConfigError, KeyFault, LockKey, StoreError};

/// Why a lock could not be had, or was lost.
///
/// The variants are what a service reacts to differently; match on them, and show [`Display`](fmt::Display) to people:
/// it names the key, what happened and what to do. The type is small (at most 128 bytes) and holds no password.
///
/// | variant | means | an HTTP service would answer |
/// |---|---|---|
/// | [`Busy`](Self::Busy) | somebody else holds it, the wait is used up | 409 or 423 |
/// | [`RateLimited`](Self::RateLimited) | a rate limit is used up for now | 429, with `Retry-After` |
/// | [`Lost`](Self::Lost) | held, but no more; the body was stopped, perhaps half done | 503 |
/// | [`Unavailable`](Self::Unavailable) | the store did not answer, or refused | 503 |
/// | [`WouldDeadlock`](Self::WouldDeadlock) | the caller itself holds it | 500 (a bug) |
/// | [`InvalidKey`](Self::InvalidKey) | the key can't be used | 400 |
/// | [`KeyConflict`](Self::KeyConflict) | the key holds something else | 500 |
/// | [`Config`](Self::Config) | an option or the URL is wrong | 500 |
/// | [`NotInitialized`](Self::NotInitialized), [`AlreadyInitialized`](Self::AlreadyInitialized) | the global client | 500 |
/// | [`Shutdown`](Self::Shutdown) | this client was shut down | 503 |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another holder had the lock for the whole wait, or a [`Latch`](crate::Latch) has not opened in it. The store is
    /// up: it said so.
    #[error("the lock {} is held by somebody else (waited {waited:.1?}); try again later, or allow a longer `wait`", .key.shortened())]
    #[non_exhaustive]
    Busy {
        /// What was to be locked.
        key: LockKey,
        /// How long the request waited for it.
        waited: Duration,
    },
    /// More than the rate limit allows wanted to pass, and the turn of this one would come after its wait. Nothing was
    /// taken, and the body did not run.
    #[error("the rate limit {} is used up; try again in {retry_after:.1?}, or allow a longer `wait`", .key.shortened())]
    #[non_exhaustive]
    RateLimited {
        /// Whose limit it is.
        key: LockKey,
        /// When the same request could pass, if nobody else does meanwhile.
        retry_after: Duration,
    },
    /// The lock was held and can no longer be trusted, so the body was stopped. Or there is no [`Latch`](crate::Latch)
    /// to count down, or none any more to wait for.
    #[error("{}", WasLost(.key, *.reason))]
    #[non_exhaustive]
    Lost {
        /// What was locked.
        key: LockKey,
        /// How it was lost.
        reason: LostReason,
    },
    /// The store did not answer, or refused. Whether the lock is free is not known; the body did not run.
    #[error("the lock store can't be used{}: {source}", OnKey(.key))]
    #[non_exhaustive]
    Unavailable {
        /// What was to be locked, if the request was for a key.
        key: Option<LockKey>,
        /// What the store said, or that it did not.
        source: StoreError,
    },
    /// The caller's own call chain holds this lock, and the request can't share that hold: it asks for more (a writer
    /// inside of a reader, or other keys besides), or not to share it (`reentrant = false`).
    #[error("the lock {} is already held further up in this call chain, and this request can't share it, since it asks for more than is held there, or for `reentrant = false`: waiting might never end", .key.shortened())]
    #[non_exhaustive]
    WouldDeadlock {
        /// What was to be locked.
        key: LockKey,
    },
    /// The key can't be used; nothing was sent to the store.
    #[error("the lock key {} can't be used: {fault}", .key.shortened())]
    #[non_exhaustive]
    InvalidKey {
        /// The key as rendered; one that is too long, shortened.
        key: LockKey,
        /// What is wrong with it.
        fault: KeyFault,
    },
    /// The key, or one of its helper keys, holds something in the store that is not this kind of lock.
    #[error("the key {} holds something in the store that is not this kind of lock: another kind of lock, or something else; choose another key or namespace, or delete it there", .key.shortened())]
    #[non_exhaustive]
    KeyConflict {
        /// What was to be locked.
        key: LockKey,
    },
    /// An option or the URL is wrong, or two options contradict each other.
    #[error("lock configuration: {message}")]
    #[non_exhaustive]
    Config {
        /// What is wrong and what to write.
        message: Box<str>,
    },
    /// There is no global client yet.
    #[error(
        "there is no global lock client yet: call `lock_runtime::init(url).await` once at startup (or `client.install()`), or run inside `client.scope(…)`"
    )]
    NotInitialized,
    /// There is a global client already.
    #[error(
        "the global lock client was installed before; `init` and `install` are for once, at startup"
    )]
    AlreadyInitialized,
    /// The client was shut down.
    #[error("the lock client was shut down; no new locks are taken")]
    Shutdown,
}

impl LockError {
    pub(crate) fn config(message: impl Into<Box<str>>) -> Self {
        Self::Config {
            message: message.into(),
        }
    }

    /// Whether somebody else holds the lock: the one case in which trying again later is all there is to do.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}

impl From<ConfigError> for LockError {
    fn from(error: ConfigError) -> Self {
        Self::config(error.into_message())
    }
}

struct OnKey<'e>(&'e Option<LockKey>);

impl fmt::Display for OnKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => write!(f, " for {}", key.shortened()),
            None => Ok(()),
        }
    }
}

struct WasLost<'e>(&'e LockKey, LostReason);

impl fmt::Display for WasLost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(key, reason) = self;
        let key = key.shortened();
        match reason {
            LostReason::NotSet => write!(
                f,
                "the latch {key} can't open: {reason}; set it again, for as long as it takes"
            ),
            _ => write!(
                f,
                "the lock {key} was lost: {reason}; what the body did so far may be half done, check it before a retry"
            ),
        }
    }
}

/// How a hold came to its end before it was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// Its lease ended on this machine's monotonic clock: a fixed lease was too short for the body, renewals went
    /// unanswered, or the process was stopped, or the machine suspended.
    Expired,
    /// The store said that the hold is gone: it lost its data, evicted the key, or an operator took the lock away.
    Gone,
    /// `max_hold` was reached.
    MaxHold,
    /// The client was shut down and its timeout ran out.
    Shutdown,
    /// Of a latch: it was never set, or its time to live has ended, or the store lost it.
    NotSet,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its lease ended: the body outlived a fixed lease, or renewals got no answer, or the process stood still",
            Self::Gone => "the store no longer has it (data lost, key evicted or deleted, or released by force)",
            Self::MaxHold => "`max_hold` was reached",
            Self::Shutdown => "the client was shut down",
            Self::NotSet => "it was never set, or its time to live has ended, or the store lost it",
        })
    }
}

#[cfg(test)]
mod tests {
    use lock_store::StoreErrorKind;

    use super::*;

    #[test]
    fn errors_are_small_and_name_the_key() {
        assert!(size_of::<LockError>() <= 128, "{}", size_of::<LockError>());
        let error = LockError::Busy {
            key: "stock:42".into(),
            waited: Duration::from_millis(3000),
        };
        assert!(
            error
                .to_string()
                .starts_with("the lock \"stock:42\" is held"),
            "{error}"
        );
        let source = StoreError::new(StoreErrorKind::Timeout, "500ms");
        let error = LockError::Unavailable {
            key: Some("a".into()),
            source,
        };
        assert!(
            error
                .to_string()
                .contains("for \"a\": no answer in time (500ms)"),
            "{error}"
        );
        assert!(std::error::Error::source(&error).is_some());
    }
}
