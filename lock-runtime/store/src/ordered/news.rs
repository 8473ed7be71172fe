//! [`SessionNews`]: what a session tells its store.

use crate::link::Link;

/// What a session tells its store.
#[derive(Debug)]
pub enum SessionNews {
    /// What was watched under this name has changed, or is gone, or may be.
    Changed(String),
    /// A connection is up. What was watched over the one before is not any more.
    Up,
    /// The session with this number is over, and all that hung on it.
    Over(i64, Link),
    /// The client is closed.
    Closed,
}
