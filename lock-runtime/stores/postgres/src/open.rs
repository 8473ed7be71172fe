//! From a URL to a store.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lock_store::{Access, ConfigError, Layout, Mutex, Store, StoreContext};
use tokio::sync::{oneshot, watch};

use crate::flights::Flights;
use crate::layouts::shedlock::store::ShedLockTable;
use crate::listen::{Hearing, Subscriber};
use crate::news::Hearer;
use crate::placed::Placed;
use crate::pool::Pool;
use crate::store::{PostgresStore, SLACK};
use crate::sweep::sweep;
use crate::together::Together;
use crate::url;

/// Opens a database, such as `postgres://app:word@db.internal/shop`, in the background.
///
/// # Errors
/// For a bad URL, and for settings that contradict it or can't be read. That the database can't be
/// used is told by [`Store::await_connection`] and by each request.
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
        name,
        timeouts,
        layout,
        ..
    } = context;
    let mut settings = url::read(url, access, &name, timeouts)?;
    settings.layout = layout;
    match layout {
        Layout::Native => {}
        // It knows no messages.
        Layout::ShedLock => settings.listen = None,
        _ => return Err(layout.refused_by("PostgreSQL")),
    }
    let hearer = Hearer {
        listener,
        namespace: namespace.clone(),
    };
    let (connect_timeout, listen) = (settings.route.limit, settings.listen.clone());
    let pool = Pool::new(settings, clock.clone(), hearer.clone());
    let (sender, hearing) = watch::channel(Hearing::Unknown);
    let (open, closed) = oneshot::channel();
    if let Some(route) = listen {
        Subscriber::new(route, client, &pool, hearer.clone(), sender).start(closed);
    }
    if layout == Layout::Native {
        clock.spawn(sweep(Arc::downgrade(&pool)));
    }
    let store = Arc::new_cyclic(|me| PostgresStore {
        me: me.clone(),
        pool,
        client,
        namespace,
        hearer,
        late: timeouts.command + SLACK,
        connect_timeout,
        hearing,
        open: Mutex::new(Some(open)),
        command_timeout: timeouts.command,
        flights: Flights::default(),
        looks: Mutex::default(),
        placed: Placed::default(),
        row_kept: Mutex::default(),
        has_waited: AtomicBool::new(false),
        acquiring: Together::default(),
        releasing: Together::default(),
    });
    Ok(match layout {
        Layout::ShedLock => Arc::new(ShedLockTable::new(store, &name)),
        _ => store,
    })
}
