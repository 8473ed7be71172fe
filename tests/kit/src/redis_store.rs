//! A Redis store without a client around it.

use std::sync::Arc;

use lock_store::{ClientId, Clock, Listener, Namespace, Store};
use lock_store_redis::{Settings, open};

/// The store of this URL, with the default settings.
///
/// # Panics
/// For a bad URL or namespace.
pub fn redis_store(
    url: &str,
    namespace: &str,
    client: ClientId,
    listener: &Arc<dyn Listener>,
    clock: Clock,
) -> Arc<dyn Store> {
    let namespace = Namespace::new(namespace).expect("a good namespace");
    let listener = Arc::downgrade(listener);
    let store = open(
        url,
        &namespace,
        client,
        listener,
        clock,
        Settings::default(),
    );
    store.expect("a good URL")
}
