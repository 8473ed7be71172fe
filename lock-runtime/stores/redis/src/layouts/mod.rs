//! Locks as other libraries keep them in Redis, a room for each. Each layout is a store over the
//! connections of [`RedisStore`], with commands of its own.

pub(crate) mod options;
mod redisson;
mod shedlock;
mod text_store;
mod timestamp;

use std::sync::Arc;

use lock_store::{ConfigError, Layout, Namespace, Store};

use self::options::LayoutOptions;
use self::redisson::RedissonStore;
pub(crate) use self::redisson::found::lock_of_another_layout;
use self::shedlock::ShedLock;
use self::text_store::TextStore;
use self::timestamp::{Timestamp, WEAKNESSES};
use crate::names::Prefix;
use crate::store::RedisStore;
use crate::topology::url::Topology;
use crate::transport::foreign_channels::ForeignChannels;

/// Refuses a layout that is not there, and servers that can't keep it.
pub(crate) fn check(
    layout: Layout,
    topology: &Topology,
    has_replicas: bool,
) -> Result<(), ConfigError> {
    let refused = |why: &str| Err(ConfigError::new(format!("the layout `{layout}` {why}")));
    match layout {
        Layout::Native => Ok(()),
        Layout::Redisson => redisson::check(topology, has_replicas),
        Layout::Timestamp | Layout::ShedLock => match topology {
            Topology::Quorum { .. } => refused(
                "is on one server, and the URL names several that vote; its other clients know no \
                 vote: write `redis://`",
            ),
            _ if has_replicas => refused(
                "has no confirmation by replicas, which its other clients do not wait for; leave \
                 `replicas` out",
            ),
            _ => Ok(()),
        },
        _ => Err(layout.refused_by("Redis")),
    }
}

/// Where others' messages go, in a layout that has some.
pub(crate) fn channels(layout: Layout) -> Option<Arc<ForeignChannels>> {
    (layout == Layout::Redisson).then(Arc::default)
}

/// What the client's own keys and channels begin with.
pub(crate) fn prefix(layout: Layout, options: &LayoutOptions, namespace: &Namespace) -> Prefix {
    match layout {
        Layout::ShedLock => shedlock::channels(&options.prefix, namespace),
        _ => Prefix::new(namespace),
    }
}

/// The store that keeps its locks in this layout, of those that [`check`] lets through.
pub(crate) fn of(
    layout: Layout,
    options: LayoutOptions,
    namespace: Namespace,
    host: &str,
    store: RedisStore,
    channels: Option<Arc<ForeignChannels>>,
) -> Arc<dyn Store> {
    let LayoutOptions { unit, skew, prefix } = options;
    match layout {
        Layout::Redisson => {
            let channels = channels.unwrap_or_default();
            Arc::new(RedissonStore::new(store, channels))
        }
        Layout::ShedLock => {
            let layout = ShedLock {
                prefix,
                environment: namespace,
                host: host.to_owned(),
            };
            Arc::new(TextStore::new(store, layout))
        }
        Layout::Timestamp => {
            tracing::warn!("{WEAKNESSES}");
            let layout = Timestamp {
                unit,
                skew,
                namespace: store.namespace.clone(),
            };
            Arc::new(TextStore::new(store, layout))
        }
        _ => Arc::new(store),
    }
}
