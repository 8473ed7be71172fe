//! [`HeardGrant`]: what the store told a waiter.

use lock_store::{Instant, Link};

/// A hand-over by the store, as it was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardGrant {
    /// The link that told it.
    pub(crate) link: Link,
    pub(crate) token: Option<u64>,
    /// The store had carried out a command sent then when it told this, if one is known.
    pub(crate) after: Option<Instant>,
}
