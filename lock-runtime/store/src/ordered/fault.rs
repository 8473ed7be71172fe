//! [`OperationFault`]: why a request failed, and over which connection it was sent.

use crate::error::{StoreError, StoreErrorKind};
use crate::instant::Instant;
use crate::link::Link;

/// A connection that is up, as operations see it.
pub trait LiveConnection {
    /// The session's link.
    fn link(&self) -> Link;

    /// The server's name, for people.
    fn server(&self) -> &str;

    /// When it came up.
    fn since(&self) -> Instant;
}

/// Why a request failed. `R` is how a server refuses.
#[derive(Clone, Debug)]
pub enum OperationFault<R> {
    /// The connection has ended, or the session. What was sent may have been carried out.
    Lost(StoreError),
    /// The server's word for it. Whether it was carried out all the same is the engine's to tell
    /// from that word: some are said after it, or of all that was under way.
    Refused(R),
    /// The server's answer can't be read.
    Unreadable,
    /// What stands under this name is another program's.
    Foreign(String),
    /// It was not sent, since nobody waits for it any more, or was not answered in its time.
    GivenUp,
}

/// The connection is gone, or there can be none.
#[must_use]
pub fn gone(server: &str, why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Disconnected, format!("{server}: {why}"))
}

/// There was no answer in time.
#[must_use]
pub fn silent(server: &str) -> StoreError {
    let text = format!("{server}: it is slow, stands still, or has no majority");
    StoreError::new(StoreErrorKind::Timeout, text)
}
