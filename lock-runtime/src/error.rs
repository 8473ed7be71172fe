//! [`LockError`]: everything that can keep a caller from its lock, told apart.

mod constructors;
mod http;
mod in_the_way;
mod lost;

use std::fmt;
use std::time::Duration;

use lock_store::{ConfigError, KeyFault, LockKey, StoreError};

use self::lost::WasLost;

pub use self::in_the_way::{HeldBy, KeyKind};
pub use self::lost::LostReason;

/// Why a lock could not be had, or was lost.
///
/// Match on the variants: they are what a service reacts to differently. Show
/// [`Display`](fmt::Display) to people: it says what happened and, where there is one, the key, the
/// server and the next step. The type is small (at most 128 bytes) and holds no password. What to
/// do for each: `docs/errors.md`. [`http_status`](Self::http_status) gives the last column,
/// [`retry_after`](Self::retry_after) a `Retry-After` where there is one.
///
/// | variant | means | an HTTP service would answer |
/// |---|---|---|
/// | [`Busy`](Self::Busy) | it did not become the caller's within the wait | 409 |
/// | [`RateLimited`](Self::RateLimited) | a rate limit is used up for now | 429 |
/// | [`Lost`](Self::Lost) | held, then lost, see [`body_ended`](Self::body_ended) | 500 or 409 |
/// | [`LatchClosed`](Self::LatchClosed) | a latch did not open in time | 409 |
/// | [`LatchNotSet`](Self::LatchNotSet) | there is no such latch, or no longer | 404 |
/// | [`Unavailable`](Self::Unavailable) | the store did not answer, or refused | 503 |
/// | [`WouldDeadlock`](Self::WouldDeadlock) | the caller itself holds it, and can't share it | 500 (a bug) |
/// | [`InvalidKey`](Self::InvalidKey) | the key can't be used | 400 |
/// | [`KeyConflict`](Self::KeyConflict) | the key holds something else | 500 |
/// | [`Config`](Self::Config) | an option or the URL is wrong | 500 |
/// | [`NotInitialized`](Self::NotInitialized) | there is no global client | 500 |
/// | [`AlreadyInitialized`](Self::AlreadyInitialized) | there is one | 500 |
/// | [`Shutdown`](Self::Shutdown) | this client was shut down | 503 |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The lock did not become the caller's within the wait. The store is up: it said so.
    #[error(
        "the lock {} is {held_by} (waited {waited:.1?}); try again later, or allow a \
         longer `wait`",
        .key.shortened()
    )]
    #[non_exhaustive]
    Busy {
        /// What was to be locked.
        key: LockKey,
        /// Who has it.
        held_by: HeldBy,
        /// How long the request waited for it.
        waited: Duration,
    },
    /// The rate limit is used up, and the turn of this request would come after its wait. Nothing
    /// was taken, unless the store answered too late. The body did not run.
    #[error(
        "the rate limit {} is used up; try again in {retry_after:.1?}, or allow a longer `wait`",
        .key.shortened()
    )]
    #[non_exhaustive]
    RateLimited {
        /// The limiter's key.
        key: LockKey,
        /// After this time the same request could pass, if nobody else does meanwhile.
        retry_after: Duration,
    },
    /// The lock was held and can no longer be trusted. The body was stopped, or had gone on to its
    /// end ([`body_ended`](Self::body_ended)).
    #[error("{}", WasLost(.key, *.reason, *.body_ended))]
    #[non_exhaustive]
    Lost {
        /// What was locked.
        key: LockKey,
        /// How it was lost.
        reason: LostReason,
        /// Whether the body had ended by itself.
        body_ended: bool,
    },
    /// A [`Latch`](crate::Latch) did not open within the wait. The store is up: it said so.
    #[error(
        "the latch {} has not opened (waited {waited:.1?}); wait again, or for longer",
        .key.shortened()
    )]
    #[non_exhaustive]
    LatchClosed {
        /// The latch.
        key: LockKey,
        /// How long the call waited for it.
        waited: Duration,
    },
    /// There is no [`Latch`](crate::Latch) to count down, or no longer one to wait for: it was
    /// never set, has expired, or the store lost it.
    #[error(
        "the latch {} is not set: it never was, or its time to live has ended, or the store lost \
         it; set it again, for as long as it takes",
        .key.shortened()
    )]
    #[non_exhaustive]
    LatchNotSet {
        /// The latch.
        key: LockKey,
    },
    /// The store did not answer, or refused. Whether the lock is free is not known. A request for a
    /// lock that ends so has not run the body. The work under a guard is done or under way when its
    /// [`release`](crate::Guard::release), [`extend`](crate::Guard::extend) or
    /// [`downgrade`](crate::Guard::downgrade) ends so.
    #[error("the lock store can't be used{}: {source}", OnKey(.key))]
    #[non_exhaustive]
    Unavailable {
        /// What was to be locked, if the request was for a key.
        key: Option<LockKey>,
        /// What the store said, or that it did not.
        source: StoreError,
    },
    /// The caller's own call chain holds this lock and can't share it. The request asks for more (a
    /// writer inside a reader, other keys besides), or has `reentrant = false`.
    #[error(
        "the lock {} is already held by this call chain and cannot be shared: more was requested, \
         or `reentrant = false`; waiting might never end",
        .key.shortened()
    )]
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
    /// In the store, the key or one of its helper keys is not this kind of lock.
    #[error(
        "the key {} holds {found} in the store, and not what was asked for; {}",
        .key.shortened(), .found.advice()
    )]
    #[non_exhaustive]
    KeyConflict {
        /// What was to be locked.
        key: LockKey,
        /// What it holds instead.
        found: KeyKind,
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
        "there is no global lock client yet: call `lock_runtime::init(url).await` once at startup \
         (or `client.install()`), or run inside `client.scope(…)`"
    )]
    NotInitialized,
    /// There is a global client already.
    #[error(
        "there is a global lock client already: call `init` or `install` once, at startup, or \
         after the `shutdown` of the one before"
    )]
    AlreadyInitialized,
    /// The client was shut down.
    #[error("the lock client was shut down; no new locks are taken")]
    Shutdown,
}

impl LockError {
    /// What was to be locked, where the error is about a key.
    #[must_use]
    pub fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Busy { key, .. }
            | Self::RateLimited { key, .. }
            | Self::Lost { key, .. }
            | Self::LatchClosed { key, .. }
            | Self::LatchNotSet { key }
            | Self::WouldDeadlock { key }
            | Self::InvalidKey { key, .. }
            | Self::KeyConflict { key, .. } => Some(key),
            Self::Unavailable { key, .. } => key.as_ref(),
            Self::Config { .. }
            | Self::NotInitialized
            | Self::AlreadyInitialized
            | Self::Shutdown => None,
        }
    }

    /// Whether another holder has the lock. Here trying again later is all there is to do.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// Whether the lock was held and lost. Check what was done under it; see
    /// [`body_ended`](Self::body_ended).
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether the store did not answer, or refused. No body ran, unless a guard's method gave it:
    /// see [`Unavailable`](Self::Unavailable).
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Whether the body of a [`Lost`](Self::Lost) lock had gone on to its end: it blocked its
    /// thread, or the lock was lost during its last poll.
    ///
    /// - `false`: the body was stopped at an await point. It may have done a part of its work. Look
    ///   what is there; then do the rest, undo it, or run it again if it may run twice.
    /// - `true`: all of its work is done, and what it returned was dropped. A retry does it a
    ///   second time. Another holder may have worked at the same time. Check what the two wrote,
    ///   unless a [fencing token](crate::FencingToken) has kept the late writes out.
    #[must_use]
    pub fn body_ended(&self) -> bool {
        matches!(
            self,
            Self::Lost {
                body_ended: true,
                ..
            }
        )
    }
}

impl From<ConfigError> for LockError {
    fn from(error: ConfigError) -> Self {
        Self::config(error.into_message())
    }
}

/// The key that an error is about, if there is one.
struct OnKey<'e>(&'e Option<LockKey>);

impl fmt::Display for OnKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => write!(f, " for {}", key.shortened()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_store::StoreErrorKind;

    use super::*;

    #[test]
    fn errors_made_by_hand_are_what_their_names_say() {
        let busy = LockError::busy("k");
        assert!(busy.is_busy() && !busy.is_lost() && !busy.is_unavailable());
        let lost = LockError::lost("k", LostReason::Gone);
        assert!(lost.is_lost() && !lost.body_ended());
        let lost_after = LockError::lost_after_body("k", LostReason::Gone);
        assert!(lost_after.is_lost() && lost_after.body_ended() && !busy.body_ended());
        let unavailable = LockError::unavailable(StoreErrorKind::Timeout, "500ms");
        assert!(unavailable.is_unavailable() && !unavailable.is_busy());
        for about_a_key in [
            busy,
            lost,
            lost_after,
            LockError::rate_limited("k", Duration::from_secs(1)),
            LockError::would_deadlock("k"),
            LockError::invalid_key("k", KeyFault::Braces),
            LockError::key_conflict("k", KeyKind::NoLock),
        ] {
            assert_eq!(about_a_key.key(), Some(&"k".into()), "{about_a_key}");
        }
        for about_none in [
            unavailable,
            LockError::config("bad"),
            LockError::Shutdown,
            LockError::NotInitialized,
            LockError::AlreadyInitialized,
        ] {
            assert_eq!(about_none.key(), None, "{about_none}");
        }
        let source = StoreError::new(StoreErrorKind::Timeout, "500ms");
        let key = Some("k".into());
        assert_eq!(
            LockError::Unavailable { key, source }.key(),
            Some(&"k".into())
        );
    }

    #[test]
    fn a_conflict_says_what_was_found() {
        for (found, says) in [
            (KeyKind::Exclusive, "an exclusive lock"),
            (KeyKind::ReadWrite, "a read-write lock"),
            (KeyKind::Semaphore, "a semaphore"),
            (KeyKind::Shares, "a semaphore"),
            (KeyKind::OtherLayout("a lock of ShedLock"), "ShedLock"),
            (KeyKind::NoLock, "no lock"),
            (KeyKind::Unknown, "something else"),
        ] {
            let text = LockError::key_conflict("k", found).to_string();
            assert!(text.contains(says), "{text}");
            // Of what may be a lock, the holder may be at work.
            let is_none = found == KeyKind::NoLock;
            assert_eq!(text.contains("or delete it"), is_none, "{text}");
            assert_eq!(text.contains("do not delete it"), !is_none, "{text}");
        }
    }

    #[test]
    fn errors_are_small_and_name_the_key() {
        assert!(size_of::<LockError>() <= 128, "{}", size_of::<LockError>());
        let error = LockError::Busy {
            key: "stock:42".into(),
            held_by: HeldBy::Client {
                name: "orders-7f9c".into(),
                held_for: Some(Duration::from_millis(4000)),
            },
            waited: Duration::from_millis(3000),
        };
        assert!(
            error
                .to_string()
                .starts_with("the lock \"stock:42\" is held by orders-7f9c for 4.0s (waited 3.0s)"),
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
