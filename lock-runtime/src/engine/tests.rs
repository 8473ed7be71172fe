//! What the unit tests of the engine share.

use std::sync::Arc;

use lock_store::memory::MemoryStore;
use lock_store::{ClientId, Clock, HandedOver, Listener, Namespace, Store, StoreContext, WakeUp};

/// Hears nothing.
#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn on_granted(&self, _: HandedOver) -> WakeUp {
        WakeUp::default()
    }
    fn recheck(&self) {}
}

/// A connection to an embedded store of its own.
pub(super) fn test_store(clock: Clock) -> Arc<dyn Store> {
    let listener: Arc<dyn Listener> = Arc::new(Deaf);
    let Ok(namespace) = Namespace::new("test") else {
        unreachable!("a good namespace");
    };
    let context = StoreContext::new(namespace, ClientId(1), &listener, clock);
    MemoryStore::new().connect(context)
}
