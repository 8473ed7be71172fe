//! [`HeldBy`] and [`KeyKind`]: who, or what, is in the way of a request.

use std::fmt;
use std::time::Duration;

/// Who has a lock that is [busy](crate::LockError::Busy), as far as it is known: for people, in a
/// log or a message. Nothing should depend on it.
///
/// A request that has waited asks the holder's client for its name by a message. A request that
/// does not wait (`wait = "0s"`) knows only what the store's reply says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldBy {
    /// Somebody.
    Unknown,
    /// This very client: another task, or a nested call that has left its call chain.
    ThisClient,
    /// Another client of this library.
    #[non_exhaustive]
    Client {
        /// What it calls itself ([`name`](crate::LockClientBuilder::name)).
        name: Box<str>,
        /// For how long it has held the lock, by its own clock; `None` if it has just released it.
        held_for: Option<Duration>,
    },
    /// Another client of this library, which did not say who it is.
    AnotherClient,
    /// Another client of this library, which is not connected to the store. Most likely it has
    /// gone, and the lock is free when its lease ends. It may also be about to connect again, or
    /// have no right to subscribe.
    Disconnected,
    /// Nobody: it was released, and stays taken for a while
    /// ([`hold_at_least`](crate::Lock::hold_at_least)).
    Kept,
    /// A client that is not this library.
    Foreign,
    /// The same, by the name that its lock tells.
    #[non_exhaustive]
    ForeignClient {
        /// The name, such as `Redisson client 0a1b2c3d-…, thread 34`.
        name: Box<str>,
    },
}

/// As it reads behind "the lock is …".
impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("held by somebody else"),
            Self::ThisClient => f.write_str(
                "held by this very client: by another task, \
                 or by a caller whose call chain was left with `spawn`",
            ),
            Self::Client {
                name,
                held_for: Some(held_for),
            } => write!(f, "held by {name} for {held_for:.1?}"),
            Self::Client { name, .. } => write!(f, "held by {name} until just now"),
            Self::AnotherClient => f.write_str("held by another client"),
            Self::Disconnected => f.write_str(
                "held by a client that does not listen at the store (it may be gone; then the \
                     lock is free when its lease ends)",
            ),
            Self::Kept => f.write_str("kept for a while after its release (`hold_at_least`)"),
            Self::Foreign => f.write_str("held by a client that is not this library"),
            Self::ForeignClient { name } => write!(f, "held by {name}"),
        }
    }
}

/// What a key holds in the store, where the request was for another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyKind {
    /// An exclusive lock, of this library or of any client that follows the recipe `SET NX PX`. A
    /// number is one, too: it may be an owner's text, the time of a lock, or permits of Redisson.
    Exclusive,
    /// A read-write lock.
    ReadWrite,
    /// A semaphore.
    Semaphore,
    /// A lock that is held in shares: the readers of a read-write lock, or a semaphore.
    Shares,
    /// A lock that is kept in another way than this client's ([`Layout`](crate::Layout)): what it
    /// is, and what to do.
    OtherLayout(&'static str),
    /// No lock at all: a list, a hash, a latch.
    NoLock,
    /// Something else. It could not be seen, or it is in a helper key of the lock.
    Unknown,
}

impl KeyKind {
    /// What to do about it.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::NoLock => "choose another key or namespace, or delete it there",
            Self::OtherLayout(_) => {
                "choose another key or namespace, or a client with the layout and version of that \
                 lock; while its holder may be at work, do not delete it"
            }
            Self::Exclusive | Self::ReadWrite | Self::Semaphore | Self::Shares | Self::Unknown => {
                "choose another key or namespace; while its holder may be at work, do not delete it"
            }
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "an exclusive lock",
            Self::ReadWrite => "a read-write lock",
            Self::Semaphore => "a semaphore",
            Self::Shares => "a lock in shares (readers, or a semaphore)",
            Self::OtherLayout(what) => what,
            Self::NoLock => "something that is no lock",
            Self::Unknown => "something else, in itself or in a helper key as the fence counter,",
        })
    }
}
