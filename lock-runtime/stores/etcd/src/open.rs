//! From a URL to a store.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lock_store::ordered::{OrderedClient, OrderedStore, SessionMembers};
use lock_store::{Access, ConfigError, Store, StoreContext};
use tokio::sync::mpsc;

use crate::connection::LoginToken;
use crate::dial::Dialer;
use crate::names;
use crate::session::{Session, key_of};
use crate::store::EtcdEngine;
use crate::transport::Transport;
use crate::url;

/// Opens the cluster of a URL such as `etcd://h1,h2,h3/locks`, in the background.
///
/// # Errors
/// For a bad URL, and for settings that contradict it or can't be read. That the servers can't be
/// used is told by [`Store::await_connection`] and by each request.
pub fn open(
    url: &str,
    context: StoreContext,
    access: &Access,
) -> Result<Arc<dyn Store>, ConfigError> {
    let settings = Arc::new(url::read(url, access)?);
    let transport = Transport::new(&settings, access)?;
    let common = OrderedClient::new(&context);
    let (sender, news) = mpsc::unbounded_channel();
    let own = names::of_namespace(&settings.prefix, &context.namespace);
    let key = key_of(&names::helpers(&own), context.client);
    let identity = LoginToken::new(settings.user.clone(), access.provider.clone());
    let limit = context.timeouts.connect;
    let dialer = Dialer {
        settings: Arc::clone(&settings),
        transport: transport.clone(),
        identity: Arc::new(identity),
        probe: key.clone(),
        clock: context.clock.clone(),
        members: SessionMembers::new(settings.hosts.clone(), context.client, limit),
    };
    let session = Arc::new(Session::new(dialer, key, context.listener, sender));
    context.clock.spawn(Arc::clone(&session).run());
    let engine = EtcdEngine {
        common,
        session,
        settings,
        transport,
        granting: tokio::sync::Mutex::default(),
        letters: AtomicU64::new(0),
    };
    Ok(Arc::new(OrderedStore::begin(Arc::new(engine), news)))
}
