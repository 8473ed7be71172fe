//! From a URL to a store.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{ConfigError, Mutex, Store, StoreContext};
use tokio::sync::{oneshot, watch};

use crate::access::Access;
use crate::flights::Flights;
use crate::hearer::Hearer;
use crate::listen::{Hearing, Subscriber};
use crate::pool::Pool;
use crate::statement::Statement;
use crate::store::{PostgresStore, SLACK};
use crate::url;

/// How often what has ended is removed. The functions see to it that one client does it at a time.
const SWEEPS_EACH: Duration = Duration::from_secs(60);

/// Opens a database, such as `postgres://app:word@db.internal/shop`, in the background.
///
/// # Errors
/// For a bad URL, and for settings that contradict it or can't be read. That the database can't be
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
        name,
        timeouts,
        ..
    } = context;
    let settings = url::read(url, access, &name, timeouts)?;
    let connect_timeout = settings.route.limit;
    let hearer = Hearer {
        listener,
        namespace: namespace.clone(),
    };
    let (sender, hearing) = watch::channel(Hearing::Unknown);
    let (open, closed) = oneshot::channel();
    let listen = settings.listen.clone();
    let pool = Pool::new(settings, clock.clone(), hearer.clone());
    if let Some(route) = listen {
        let subscriber = Subscriber {
            route,
            client,
            hearer: hearer.clone(),
            pool: Arc::downgrade(&pool),
            server: pool.settings.server.clone(),
            clock: clock.clone(),
            hearing: sender,
        };
        subscriber.start(closed);
    }
    clock.spawn(sweep(Arc::downgrade(&pool)));
    Ok(Arc::new(PostgresStore {
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
        has_waited: AtomicBool::new(false),
    }))
}

/// Sweeps as long as the client lives. An error leaves it to the next time.
async fn sweep(pool: Weak<Pool>) {
    let statement = Statement::new("SELECT lock_store.sweep()", Vec::new());
    let Some(clock) = pool.upgrade().map(|pool| pool.clock.clone()) else {
        return;
    };
    loop {
        clock.sleep_until(clock.now() + SWEEPS_EACH).await;
        let Some(pool) = pool.upgrade().filter(|pool| !pool.is_closed()) else {
            return;
        };
        if !pool.is_connected() {
            continue;
        }
        let by = clock.now() + SWEEPS_EACH;
        if let Ok(connection) = pool.get(by).await {
            let busy = connection.begin();
            let done = clock.by(by, connection.run(&statement, clock.now(), SLACK));
            if let Some(Err(error)) = done.await {
                tracing::debug!(%error, "locks that have ended are left to the next sweep");
            }
            drop(busy);
        }
    }
}
