//! The name of a lock, a latch or a bucket in the server.

use std::sync::Arc;

use crate::LockKey;

/// Namespace and key.
pub(super) type SharedName = (Arc<str>, LockKey);
