//! [`KeyKind`]: what a key holds in the store.

use std::fmt;

/// What a key holds in the store, where the request was for another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyKind {
    /// An exclusive lock, of this library or of any client that follows the recipe `SET NX PX`.
    Exclusive,
    /// A read-write lock.
    ReadWrite,
    /// A semaphore.
    Semaphore,
    /// A lock that is held in shares: the readers of a read-write lock, or a semaphore.
    Shares,
    /// No lock at all: a list, a hash, a latch.
    NoLock,
    /// Something else. It could not be seen, or it is in a helper key of the lock.
    Unknown,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "an exclusive lock",
            Self::ReadWrite => "a read-write lock",
            Self::Semaphore => "a semaphore",
            Self::Shares => "a lock in shares (readers, or a semaphore)",
            Self::NoLock => "something that is no lock",
            Self::Unknown => "something else, in itself or in a helper key as the fence counter,",
        })
    }
}
