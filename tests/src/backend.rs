//! The stores under test, behind one face.

use std::time::Instant;

use lock_runtime::store::memory::MemoryStore;
use lock_runtime::{LockClient, LockClientBuilder};

use crate::RedisServer;

/// One store, which any number of clients share.
#[derive(Debug)]
pub enum Backend {
    /// The embedded store.
    Memory(MemoryStore),
    /// A `redis-server` process of this test's own.
    Redis(Box<RedisServer>),
}

impl Backend {
    /// An empty embedded store.
    #[must_use]
    pub fn memory() -> Self {
        Self::Memory(MemoryStore::new())
    }

    /// A new `redis-server`.
    pub async fn redis() -> Self {
        Self::Redis(Box::new(RedisServer::start().await))
    }

    /// A builder for one more client of this store.
    pub fn builder(&self) -> LockClientBuilder {
        match self {
            Self::Memory(store) => {
                let store = store.clone();
                LockClient::builder().store(move |namespace, id, listener, clock| {
                    store.connect(namespace, id, listener, clock)
                })
            }
            Self::Redis(server) => LockClient::builder().url(server.url()),
        }
    }

    /// One more client with the default settings.
    pub async fn client(&self) -> LockClient {
        self.builder().connect().await.expect("the store is up")
    }

    /// Locks, latches and places in queues that are in the store; not counted are fence counters, which stay for a day,
    /// and what calls came to, which is remembered for a minute.
    pub async fn leftovers(&self) -> usize {
        match self {
            Self::Memory(store) => store.leftovers(Instant::now()),
            Self::Redis(server) => server
                .keys("*")
                .await
                .iter()
                .filter(|key| !key.contains("%fence") && !key.contains("%call"))
                .count(),
        }
    }

    /// Waits until nothing is left.
    pub async fn until_empty(&self) {
        crate::eventually("the store is empty", async || self.leftovers().await == 0).await;
    }
}
