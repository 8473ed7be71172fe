//! The stores under test, behind one face.

use std::time::Instant;

use lock_runtime::store::memory::MemoryStore;
use lock_runtime::{LockClient, LockClientBuilder};

use crate::RedisServer;

/// Who the clients of a [`Backend`] are.
const USER: &str = "app";

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

    /// A new `redis-server`, whose clients have the rights that README documents and no others.
    pub async fn redis() -> Self {
        let server = RedisServer::start().await;
        let user = ["ACL", "SETUSER", USER, "on", ">word"];
        let keys = ["~lock:*", "&lock:*", "~other:*", "&other:*"];
        let rights = crate::all_documented_rights();
        let rule: Vec<_> = user.into_iter().chain(keys).chain(rights).collect();
        server.command(&rule).await;
        Self::Redis(Box::new(server))
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
            Self::Redis(server) => {
                let url = format!("redis://{USER}:word@{}", server.addr());
                LockClient::builder().url(url)
            }
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

/// # Panics
/// If a client did something that README's rights do not allow.
impl Drop for Backend {
    fn drop(&mut self) {
        let Self::Redis(server) = self else { return };
        if std::thread::panicking() {
            return;
        }
        let denied: Vec<Vec<redis::Value>> = redis::Client::open(server.url())
            .and_then(|client| client.get_connection())
            .and_then(|mut connection| redis::cmd("ACL").arg("LOG").query(&mut connection))
            .expect("the server tells what it denied");
        assert!(
            denied.is_empty(),
            "denied to the documented rights: {denied:?}"
        );
    }
}
