//! Locks as other libraries keep them in Redis, a room for each. Each layout is a store over the
//! connections of [`RedisStore`], with commands of its own.

mod redisson;

use std::sync::Arc;

use lock_store::{ConfigError, Layout, Store};

use self::redisson::RedissonStore;
pub(crate) use self::redisson::found::lock_of_redisson;
use crate::store::RedisStore;
use crate::topology::url::Topology;
use crate::transport::foreign_channels::ForeignChannels;

/// Refuses a layout that is not there, and servers that can't keep it.
pub(crate) fn check(
    layout: Layout,
    topology: &Topology,
    has_replicas: bool,
) -> Result<(), ConfigError> {
    match layout {
        Layout::Native => Ok(()),
        Layout::Redisson => redisson::check(topology, has_replicas),
        _ => Err(ConfigError::new(format!(
            "the layout `{layout}` is not on this engine; leave it out"
        ))),
    }
}

/// Where others' messages go, in a layout that has some.
pub(crate) fn channels(layout: Layout) -> Option<Arc<ForeignChannels>> {
    (layout == Layout::Redisson).then(Arc::default)
}

/// The store that keeps its locks in this layout, of those that [`check`] lets through.
pub(crate) fn of(
    layout: Layout,
    store: RedisStore,
    channels: Option<Arc<ForeignChannels>>,
) -> Arc<dyn Store> {
    match (layout, channels) {
        (Layout::Redisson, Some(channels)) => Arc::new(RedissonStore::new(store, channels)),
        _ => Arc::new(store),
    }
}
