//! [`HeardGrant`]: a grant that the store told a waiter.

use lock_store::{Instant, Trust};

/// A hand-over by the store, as it was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardGrant {
    /// How it is to be trusted.
    pub(crate) trust: Trust,
    pub(crate) token: Option<u64>,
    /// If known, and the link's order counts: when it told this, the store had carried out a
    /// command that was sent then.
    pub(crate) after: Option<Instant>,
}
