//! The stores under test, behind one face.

use std::time::Instant;

use lock_runtime::store::memory::MemoryStore;
use lock_runtime::{LockClient, LockClientBuilder};

use crate::{RedisCluster, RedisQuorum, RedisServer, SentinelGroup};

/// Who the clients of a [`Backend`] are.
const USER: &str = "app";

/// One store, which any number of clients share.
#[derive(Debug)]
pub enum Backend {
    /// The embedded store.
    Memory(MemoryStore),
    /// A `redis-server` process of this test's own.
    Redis(Box<RedisServer>),
    /// A master, and its replica, which has to confirm each hold.
    Replicated(Box<[RedisServer; 2]>),
    /// A master with replicas under sentinels.
    Sentinels(Box<SentinelGroup>),
    /// Three masters with replicas.
    Cluster(Box<RedisCluster>),
    /// Three servers that know nothing of each other.
    Quorum(Box<RedisQuorum>),
}

impl Backend {
    /// An empty embedded store.
    #[must_use]
    pub fn memory() -> Self {
        Self::Memory(MemoryStore::new())
    }

    /// A new `redis-server`, whose clients have the rights that README documents and no others. With
    /// `LOCK_TESTS_TOPOLOGY=replicas`, `sentinel`, `cluster` or `quorum` in the environment, a master whose replica confirms,
    /// a master under sentinels, a cluster, or three independent servers.
    pub async fn redis() -> Self {
        let backend = match std::env::var("LOCK_TESTS_TOPOLOGY").as_deref() {
            Ok("replicas") => {
                let master = RedisServer::start().await;
                let replica = master.start_replica().await;
                Self::Replicated(Box::new([master, replica]))
            }
            Ok("sentinel") => Self::Sentinels(Box::new(SentinelGroup::start().await)),
            Ok("cluster") => Self::Cluster(Box::new(RedisCluster::start().await)),
            Ok("quorum") => Self::Quorum(Box::new(RedisQuorum::start(3).await)),
            Ok(other) => panic!(
                "LOCK_TESTS_TOPOLOGY is {other:?}; write `replicas`, `sentinel`, `cluster` or `quorum`"
            ),
            Err(_) => Self::Redis(Box::new(RedisServer::start().await)),
        };
        backend.with_documented_rights().await
    }

    /// Three independent servers, whose clients have the documented rights.
    pub async fn quorum() -> Self {
        let backend = Self::Quorum(Box::new(RedisQuorum::start(3).await));
        backend.with_documented_rights().await
    }

    async fn with_documented_rights(self) -> Self {
        let user = ["ACL", "SETUSER", USER, "on", ">word"];
        let keys = ["~lock:*", "&lock:*", "~other:*", "&other:*"];
        let rights = crate::all_documented_rights();
        let rule: Vec<_> = user.into_iter().chain(keys).chain(rights).collect();
        for server in self.servers() {
            server.command(&rule).await;
        }
        self
    }

    /// All servers that could have locks, replicas included.
    fn servers(&self) -> &[RedisServer] {
        match self {
            Self::Memory(_) => &[],
            Self::Redis(server) => std::slice::from_ref(server),
            Self::Replicated(pair) => &**pair,
            Self::Sentinels(group) => &group.servers,
            Self::Cluster(cluster) => &cluster.nodes,
            Self::Quorum(quorum) => &quorum.servers,
        }
    }

    /// Those of them that have locks which no other has.
    fn masters(&self) -> &[RedisServer] {
        match self {
            Self::Replicated(pair) => &pair[..1],
            Self::Sentinels(group) => &group.servers[..1],
            Self::Cluster(cluster) => &cluster.nodes[..3],
            Self::Memory(_) | Self::Redis(_) | Self::Quorum(_) => self.servers(),
        }
    }

    /// Where it is, for a client that may do everything.
    ///
    /// # Panics
    /// For the embedded store, which is nowhere.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Memory(_) => panic!("the embedded store has no URL"),
            Self::Redis(server) => server.url(),
            Self::Replicated(pair) => Self::confirmed(&pair[0]),
            Self::Sentinels(group) => group.url(),
            Self::Cluster(cluster) => cluster.url(),
            Self::Quorum(quorum) => quorum.url(),
        }
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
            Self::Replicated(pair) => Self::as_user(&Self::confirmed(&pair[0])),
            Self::Sentinels(group) => Self::as_user(&group.url()),
            Self::Cluster(cluster) => Self::as_user(&cluster.url()),
            Self::Quorum(quorum) => Self::as_user(&quorum.url()),
        }
    }

    fn confirmed(master: &RedisServer) -> String {
        format!("{}?replicas=1&replicas_timeout=250ms", master.url())
    }

    fn as_user(url: &str) -> LockClientBuilder {
        let url = url.replace("://", &format!("://{USER}:word@"));
        LockClient::builder().url(url)
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
            _ => {
                let mut left = 0;
                for master in self.masters() {
                    let keys = master.keys("*").await;
                    let counts = |key: &&String| !key.contains("%fence") && !key.contains("%call");
                    left += keys.iter().filter(counts).count();
                }
                left
            }
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
        if std::thread::panicking() {
            return;
        }
        for server in self.servers() {
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
}
