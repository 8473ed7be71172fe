//! The embedded store under test.

use std::sync::Arc;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::memory::MemoryStore;
use lock_store::{ClientId, Clock, Instant, Listener, Store};

use crate::context;
use crate::{Asks, Backend, StoreUnderTest};

/// An empty embedded store.
#[derive(Debug, Default)]
pub struct MemoryBackend(MemoryStore);

impl MemoryBackend {
    /// A new one.
    pub async fn start() -> Backend {
        Backend::new(Self::default())
    }
}

impl StoreUnderTest for MemoryBackend {
    fn builder(&self) -> LockClientBuilder {
        let store = self.0.clone();
        LockClient::builder().store(move |context| Ok(store.connect(context)))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        self.0.connect(context("lock", id, listener, clock))
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async { self.0.leftovers(Instant::now()) })
    }
}
