//! From a URL to a store.

use std::sync::Arc;

use lock_store::ordered::{OrderedClient, OrderedStore, SessionMembers};
use lock_store::{Access, ConfigError, Mutex, Store, StoreContext};
use tokio::sync::mpsc;

use crate::dial::Dialer;
use crate::names::NodeLayout;
use crate::session::Session;
use crate::store::ZooKeeperEngine;
use crate::transport::Transport;
use crate::url;

/// Opens the ensemble of a URL such as `zookeeper://h1,h2,h3/locks`, in the background.
///
/// # Errors
/// For a bad URL, and for settings that contradict it or can't be read. That the servers can't be
/// used is told by [`Store::await_connection`] and by each request.
pub fn open(
    url: &str,
    context: StoreContext,
    access: &Access,
) -> Result<Arc<dyn Store>, ConfigError> {
    let mut settings = url::read(url, access)?;
    settings.layout = NodeLayout::of(context.layout)?;
    let settings = Arc::new(settings);
    let transport = Transport::new(&settings, access)?;
    let common = OrderedClient::new(&context);
    let (sender, news) = mpsc::unbounded_channel();
    let limit = context.timeouts.connect;
    let dialer = Dialer {
        settings: Arc::clone(&settings),
        transport: transport.clone(),
        clock: context.clock.clone(),
        members: SessionMembers::new(settings.hosts.clone(), context.client, limit),
    };
    let own = Arc::clone(&common.own);
    let session = Arc::new(Session::new(dialer, context.listener, sender, own));
    context.clock.spawn(Arc::clone(&session).run());
    let engine = Arc::new_cyclic(|me| ZooKeeperEngine {
        common,
        me: me.clone(),
        session,
        settings,
        transport,
        busy: Mutex::default(),
        given: Mutex::default(),
    });
    Ok(Arc::new(OrderedStore::begin(engine, news)))
}
