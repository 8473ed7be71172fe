//! From a URL to the store that it names.

use std::sync::{Arc, Weak};

use lock_store::timing::Timeouts;
use lock_store::{ClientId, Clock, ConfigError, Listener, Namespace, Store};

use crate::config::Replicas;
use crate::context::ClientContext;
use crate::names::Prefix;
use crate::quorum::store::QuorumStore;
use crate::store::RedisStore;
use crate::topology::url::{StoreUrl, Topology};
use crate::transport::client_channels::ClientChannels;

/// What a client says about its servers besides the URL.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How long connecting and a command may take. Default: 1 s and 500 ms.
    pub timeouts: Timeouts,
    /// The replicas that have to confirm each hold, unless the URL says so. Default: none.
    pub replicas: Option<Replicas>,
    /// Who the client is, in the servers' lists of clients: visible ASCII. Default: nobody.
    pub name: String,
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
    let url = StoreUrl::parse(url, settings.replicas)?;
    let namespace = Prefix::new(namespace);
    let channels = ClientChannels::new(namespace.clone(), client);
    let context = ClientContext {
        timeouts: settings.timeouts,
        clock,
        listener,
        name: settings.name.into(),
        channels: Some(Arc::new(channels)),
    };
    Ok(match url.topology {
        Topology::Quorum {
            servers,
            rejoin_after,
        } => Arc::new(QuorumStore::open(
            servers,
            rejoin_after,
            &namespace,
            client,
            &context,
        )?),
        topology => {
            let replicas = url.replicas;
            let store = RedisStore::open(topology, replicas, namespace, client, context)?;
            Arc::new(store)
        }
    })
}
