//! From a URL to a store.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lock_store::{ConfigError, Mutex, Store, StoreContext};
use tokio::sync::{oneshot, watch};

use crate::flights::Flights;
use crate::listen::{self, Hearer};
use crate::pool::Pool;
use crate::store::{PostgresStore, SLACK};
use crate::sweep::sweep;
use crate::together::Together;
use crate::url;

/// Opens a database, such as `postgres://app:word@db.internal/shop`, in the background.
///
/// # Errors
/// For a bad URL. That the database can't be used is told by [`Store::connected`] and by each
/// request.
pub fn open(url: &str, context: StoreContext) -> Result<Arc<dyn Store>, ConfigError> {
    open_with(url, context, None)
}

/// The same over TLS, with these certificates.
///
/// # Errors
/// The same, and for certificates that can't be read.
#[cfg(feature = "tls")]
pub fn open_over_tls(
    url: &str,
    context: StoreContext,
    tls: &lock_store::Tls,
) -> Result<Arc<dyn Store>, ConfigError> {
    open_with(url, context, Some(tls))
}

fn open_with(
    url: &str,
    context: StoreContext,
    tls: url::Given<'_>,
) -> Result<Arc<dyn Store>, ConfigError> {
    let StoreContext {
        namespace,
        client,
        listener,
        clock,
        name,
        timeouts,
        ..
    } = context;
    let settings = url::read(url, tls, &name, timeouts)?;
    let hearer = Hearer {
        listener,
        namespace: namespace.clone(),
    };
    let (listens, listens_now) = watch::channel(false);
    let (open, closed) = oneshot::channel();
    if let Some(route) = settings.listen.clone() {
        listen::start(
            route,
            client,
            hearer.clone(),
            &clock,
            timeouts.connect,
            listens,
            closed,
        );
    }
    let pool = Pool::new(settings, clock.clone(), timeouts.connect, hearer.clone());
    clock.spawn(sweep(Arc::downgrade(&pool)));
    Ok(Arc::new_cyclic(|me| PostgresStore {
        me: me.clone(),
        pool,
        client,
        namespace,
        hearer,
        late: timeouts.command + SLACK,
        connect_timeout: timeouts.connect,
        listens: listens_now,
        open: Mutex::new(Some(open)),
        command_timeout: timeouts.command,
        flights: Flights::default(),
        looks: Mutex::default(),
        has_waited: AtomicBool::new(false),
        acquiring: Together::default(),
        releasing: Together::default(),
    }))
}
