//! Locks as other libraries keep them in Redis, a file for each. Each layout is a store over the
//! connections of [`RedisStore`], with commands of its own.

use std::sync::Arc;

use lock_store::{ConfigError, Layout, Store};

use crate::store::RedisStore;
use crate::topology::url::Topology;

/// Refuses a layout that is not there, and servers that can't keep it.
pub(crate) fn check(
    layout: Layout,
    _topology: &Topology,
    _has_replicas: bool,
) -> Result<(), ConfigError> {
    let refused = |why: &str| Err(ConfigError::new(format!("the layout `{layout}` {why}")));
    match layout {
        Layout::Native => Ok(()),
        _ => refused("is not on this engine; leave it out"),
    }
}

/// The store that keeps its locks in this layout, of those that [`check`] lets through.
pub(crate) fn of(_layout: Layout, store: RedisStore) -> Arc<dyn Store> {
    Arc::new(store)
}
