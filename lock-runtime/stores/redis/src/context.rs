//! [`ClientContext`]: what all connections of one client share.

use std::sync::Weak;

use lock_store::timing::Timeouts;
use lock_store::{Clock, Listener};

/// A client's time limits, its clock, and its listener for what the servers tell on their own.
#[derive(Clone, Debug)]
pub(crate) struct ClientContext {
    pub(crate) timeouts: Timeouts,
    pub(crate) clock: Clock,
    pub(crate) listener: Weak<dyn Listener>,
}
