//! A Redis store without a client around it.

use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::Timeouts;
use lock_store::{ClientId, Clock, Listener, Namespace, Store};
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
    let namespace = Namespace::new(namespace).expect("a good namespace");
    let listener = Arc::downgrade(listener);
    let store = open(
        url,
        &namespace,
        client,
        listener,
        clock,
        Settings {
            timeouts,
            ..Settings::default()
        },
    );
    store.expect("a good URL")
}
