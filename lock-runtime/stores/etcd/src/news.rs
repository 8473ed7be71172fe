//! [`News`]: what a session tells its store.

use lock_store::Link;

/// What a session tells its store.
#[derive(Debug)]
pub(crate) enum News {
    /// A key that was watched is gone, or may be.
    Changed(String),
    /// A connection is up. What was watched over the one before is not any more.
    Up,
    /// The session with this lease is over, and all its places with it.
    Over(i64, Link),
    /// The client is closed.
    Closed,
}
