//! What a lock, a latch or a bucket is called in the server.

use std::sync::Arc;

use crate::LockKey;

/// Namespace and key.
pub(super) type Name = (Arc<str>, LockKey);
