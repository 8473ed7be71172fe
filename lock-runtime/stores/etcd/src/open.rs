//! From a URL to a store.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lock_store::ordered::{Burials, Looks, SessionMembers};
use lock_store::{ConfigError, Mutex, Store, StoreContext};
use tokio::sync::{Notify, mpsc};

use crate::access::Access;
use crate::connection::LoginToken;
use crate::dial::Dialer;
use crate::names;
use crate::session::{Session, key_of};
use crate::store::{EtcdStore, Inner};
use crate::transport::Transport;
use crate::url;

/// Opens the cluster of a URL such as `etcd://h1,h2,h3/locks`, in the background.
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
        ..
    } = context;
    let settings = Arc::new(url::read(url, access)?);
    let transport = Transport::new(&settings, access)?;
    let (sender, news) = mpsc::unbounded_channel();
    let own = names::of_namespace(&settings.prefix, &namespace);
    let key = key_of(&names::helpers(&own), client);
    let identity = LoginToken::new(settings.user.clone(), access.provider.clone());
    let dialer = Dialer {
        settings: Arc::clone(&settings),
        transport: transport.clone(),
        identity: Arc::new(identity),
        probe: key.clone(),
        clock: clock.clone(),
        members: SessionMembers::new(settings.hosts.clone(), client, timeouts.connect),
    };
    let session = Arc::new(Session::new(dialer, key, listener.clone(), sender));
    clock.spawn(Arc::clone(&session).run());
    let inner = Arc::new(Inner {
        session,
        settings,
        transport,
        clock: clock.clone(),
        client,
        namespace,
        listener,
        holds: Mutex::default(),
        ends: Notify::new(),
        burials: Burials::new(clock.clone()),
        looks: Looks::default(),
        granting: tokio::sync::Mutex::default(),
        letters: AtomicU64::new(0),
    });
    clock.spawn(Arc::clone(&inner).attend(news));
    clock.spawn(Arc::clone(&inner).end_in_time());
    Ok(Arc::new(EtcdStore(inner)))
}
