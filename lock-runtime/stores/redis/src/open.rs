//! From a URL to the store that it names.

use std::sync::Arc;

#[cfg(feature = "tls")]
use lock_store::Tls;
use lock_store::timing::Timeouts;
use lock_store::{Access, ConfigError, Layout, Store, StoreContext};

use crate::access::ServerAccess;
use crate::builder_login;
use crate::config::{Needs, Replicas};
use crate::context::ClientContext;
use crate::layouts::{self, options::LayoutOptions};
use crate::quorum::store::QuorumStore;
use crate::store::RedisStore;
#[cfg(feature = "tls")]
use crate::tls::Connector;
use crate::topology::address_map::AddressMap;
use crate::topology::url::{StoreUrl, Topology};
use crate::transport::client_channels::ClientChannels;

/// A client's settings for its servers, besides the URL.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The replicas that must confirm each hold, unless the URL names them. Default: none.
    pub replicas: Option<Replicas>,
    /// User, password and TLS.
    pub access: Access,
    /// The translation of the addresses that sentinels and cluster nodes announce, unless the URL
    /// has it. Default: none.
    pub addresses: AddressMap,
}

/// Reads the URL, and starts to connect in the background.
///
/// # Errors
/// [`ConfigError`] for a URL that can't be read, and for settings that contradict it or each other.
pub fn open(
    url: &str,
    context: StoreContext,
    settings: Settings,
) -> Result<Arc<dyn Store>, ConfigError> {
    let StoreContext {
        namespace,
        client,
        listener,
        clock,
        name,
        timeouts,
        layout,
        ..
    } = context;
    let (url, options) = LayoutOptions::take(layout, url)?;
    let mut url = StoreUrl::parse(&url, settings.replicas)?;
    let addresses = url.take_addresses(settings.addresses.clone())?;
    builder_login::apply(&settings.access, &mut url.topology)?;
    let access = access(&url, &settings, timeouts)?;
    layouts::check(layout, &url.topology, url.replicas.is_some())?;
    let own = namespace.clone();
    let namespace = layouts::prefix(layout, &options, &namespace);
    let context = ClientContext {
        timeouts,
        clock,
        listener,
        messages_are_hints: url.replicas.is_some()
            || matches!(url.topology, Topology::Cluster { .. }),
        name: Arc::clone(&name),
        namespace: namespace.clone(),
        needs: Needs::Locks(client),
        layout,
        channels: Some(Arc::new(ClientChannels::new(namespace.clone(), client))),
        foreign: layouts::channels(layout),
        access: Arc::new(access),
        addresses,
        provider: settings.access.provider,
    };
    if let Topology::Quorum {
        servers,
        rejoin_after,
    } = url.topology
    {
        let store = QuorumStore::open(servers, rejoin_after, &namespace, client, &context)?;
        return Ok(Arc::new(store));
    }
    let foreign = context.foreign.clone();
    let store = RedisStore::open(url.topology, url.replicas, namespace, client, context)?;
    Ok(layouts::of(layout, options, own, &name, store, foreign))
}

/// The URL without the options that only this layout has.
///
/// # Errors
/// [`ConfigError`] for a bad value of such an option.
pub fn without_layout_options(layout: Layout, url: &str) -> Result<String, ConfigError> {
    Ok(LayoutOptions::take(layout, url)?.0)
}

/// What the servers require of a connection.
fn access(
    url: &StoreUrl,
    settings: &Settings,
    timeouts: Timeouts,
) -> Result<ServerAccess, ConfigError> {
    let access = ServerAccess {
        family: url.family,
        kind: url.kind,
        connect_timeout: timeouts.connect,
        #[cfg(feature = "tls")]
        tls: connector(url, settings.access.tls.as_ref())?,
    };
    #[cfg(not(feature = "tls"))]
    if settings.access.has_tls() {
        return Err(lock_store::no_tls());
    }
    Ok(access)
}

/// The client's side of TLS, if the URL asks for it. With `#insecure` the client verifies no
/// server.
#[cfg(feature = "tls")]
fn connector(url: &StoreUrl, tls: Option<&Tls>) -> Result<Option<Connector>, ConfigError> {
    let (family, kind) = (url.family, url.kind);
    let contradiction = match tls {
        Some(_) if url.is_socket() => {
            "`tls` is given, and a Unix socket has no TLS; leave it out".to_owned()
        }
        Some(_) if !url.is_tls => format!(
            "`tls` is given, and the store's URL asks for a connection without TLS; write \
             `{family}s{kind}://` instead of `{family}{kind}://`"
        ),
        Some(_) if url.insecure => {
            "`tls` verifies the servers, and `#insecure` in the store's URL \
             turns that off; leave one of them out"
                .to_owned()
        }
        _ if !url.is_tls => return Ok(None),
        _ if url.insecure => return Connector::insecure().map(Some),
        Some(tls) => return Connector::new(tls).map(Some),
        None => return Connector::new(&Tls::new()).map(Some),
    };
    Err(ConfigError::new(contradiction))
}
