//! [`HeardGrant`]: a grant that the store told a waiter.

use lock_store::{Instant, Link};

/// A hand-over by the store, as it was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardGrant {
    /// The link that told it.
    pub(crate) link: Link,
    pub(crate) token: Option<u64>,
    /// If known: when it told this, the store had carried out a command that was sent then.
    pub(crate) after: Option<Instant>,
}
