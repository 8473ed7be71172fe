//! From a URL to the store that it names.

use std::sync::{Arc, Weak};

use lock_store::timing::Timeouts;
use lock_store::{ClientId, Clock, ConfigError, Listener, Namespace, Store};

use crate::RedisStore;
use crate::config::Replicas;
use crate::names::Prefix;
use crate::quorum::QuorumStore;

/// What a client says about its servers besides the URL.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// How long connecting and a command may take. Default: 1 s and 500 ms.
    pub timeouts: Timeouts,
    /// The replicas that have to confirm each hold, unless the URL says so. Default: none.
    pub replicas: Option<Replicas>,
}

/// Reads the URL, and starts to connect in the background.
///
/// # Errors
/// [`ConfigError`] for a URL that can't be read, and for settings that contradict it or each other.
pub fn open(
    url: &str,
    namespace: &Namespace,
    client: ClientId,
    listener: Weak<dyn Listener>,
    clock: Clock,
    settings: Settings,
) -> Result<Arc<dyn Store>, ConfigError> {
    let Settings { timeouts, replicas } = settings;
    let prefix = Prefix::new(namespace);
    let quorum = QuorumStore::open(
        url,
        timeouts,
        &prefix,
        client,
        Weak::clone(&listener),
        clock.clone(),
        replicas,
    )?;
    if let Some(quorum) = quorum {
        return Ok(Arc::new(quorum));
    }
    let store = RedisStore::open(url, timeouts, prefix, client, listener, clock, replicas)?;
    Ok(Arc::new(store))
}
