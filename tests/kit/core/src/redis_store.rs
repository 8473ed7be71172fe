//! A Redis store without a client around it.

use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::Timeouts;
use lock_store::{ClientId, Clock, Listener, Namespace, Store, StoreContext};
use lock_store_redis::{Settings, open};

/// For tests of single commands. However busy the machine is, a late answer must not replace a
/// connection: places in queues would be lost.
pub const PATIENT: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    command: Duration::from_secs(5),
};

/// The store with this URL.
///
/// # Panics
/// For a bad URL or namespace.
pub fn redis_store(
    url: &str,
    namespace: &str,
    client: ClientId,
    listener: &Arc<dyn Listener>,
    clock: Clock,
    timeouts: Timeouts,
) -> Arc<dyn Store> {
    let mut context = context(namespace, client, listener, clock);
    context.timeouts = timeouts;
    open(url, context, Settings::default()).expect("a good URL")
}

/// What a client would give to the store that it opens.
///
/// # Panics
/// For a bad namespace.
#[must_use]
pub fn context(
    namespace: &str,
    client: ClientId,
    listener: &Arc<dyn Listener>,
    clock: Clock,
) -> StoreContext {
    let namespace = Namespace::new(namespace).expect("a good namespace");
    StoreContext::new(namespace, client, listener, clock)
}
