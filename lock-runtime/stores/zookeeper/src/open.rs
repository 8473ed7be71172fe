//! From a URL to a store.

use std::sync::Arc;

use lock_store::ordered::{Burials, Looks, SessionMembers};
use lock_store::{ConfigError, Mutex, Store, StoreContext};
use tokio::sync::{Notify, mpsc};

use crate::access::Access;
use crate::dial::Dialer;
use crate::names::NodeLayout;
use crate::session::Session;
use crate::store::{Inner, ZooKeeperStore};
use crate::transport::Transport;
use crate::url;

/// Opens the ensemble of a URL such as `zookeeper://h1,h2,h3/locks`, in the background.
///
/// # Errors
/// For a bad URL, and for settings that contradict it or can't be read. That the servers can't be
/// used is told by [`Store::connected`] and by each request.
pub fn open(
    url: &str,
    context: StoreContext,
    access: &Access,
) -> Result<Arc<dyn Store>, ConfigError> {
    let StoreContext {
        namespace,
        client,
        listener,
        clock,
        timeouts,
        layout,
        ..
    } = context;
    let mut settings = url::read(url, access)?;
    settings.layout = NodeLayout::of(layout)?;
    let settings = Arc::new(settings);
    let transport = Transport::new(&settings, access)?;
    let (sender, news) = mpsc::unbounded_channel();
    let dialer = Dialer {
        settings: Arc::clone(&settings),
        transport: transport.clone(),
        clock: clock.clone(),
        members: SessionMembers::new(settings.hosts.clone(), client, timeouts.connect),
    };
    let holds = Arc::new(Mutex::default());
    let session = Session::new(dialer, listener.clone(), sender, Arc::clone(&holds));
    let session = Arc::new(session);
    clock.spawn(Arc::clone(&session).run());
    let inner = Arc::new_cyclic(|me| Inner {
        me: me.clone(),
        session,
        settings,
        transport,
        clock: clock.clone(),
        client,
        namespace,
        listener,
        holds,
        ends: Notify::new(),
        burials: Burials::new(clock.clone()),
        looks: Looks::default(),
        busy: Mutex::default(),
        given: Mutex::default(),
    });
    clock.spawn(Arc::clone(&inner).attend(news));
    clock.spawn(Arc::clone(&inner).end_in_time());
    Ok(Arc::new(ZooKeeperStore(inner)))
}
