//! The stores under test, behind one interface.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::Instant;
use lock_store::memory::MemoryStore;

use crate::{RedisCluster, RedisQuorum, RedisServer, SentinelGroup};

/// The user of a [`Backend`]'s clients.
const USER: &str = "app";

/// One store, shared by any number of clients.
#[derive(Clone, Debug)]
pub enum Backend {
    /// The embedded store.
    Memory(MemoryStore),
    /// A separate `redis-server` process for this test.
    Redis(Arc<RedisServer>),
    /// A master, and a replica that must confirm each hold.
    Replicated(Arc<[RedisServer; 2]>),
    /// A master with replicas under sentinels.
    Sentinels(Arc<SentinelGroup>),
    /// Three masters with replicas.
    Cluster(Arc<RedisCluster>),
    /// Three independent servers.
    Quorum(Arc<RedisQuorum>),
}

/// All clients, except those of the embedded store, have exactly the permissions that the page
/// about Redis documents.
impl Backend {
    /// An empty embedded store.
    #[must_use]
    pub fn memory() -> Self {
        Self::Memory(MemoryStore::new())
    }

    /// A new `redis-server`.
    pub async fn redis() -> Self {
        let server = RedisServer::start().await;
        Self::Redis(Arc::new(server)).with_documented_rights().await
    }

    /// A master with a replica that confirms holds.
    pub async fn replicated() -> Self {
        let master = RedisServer::start().await;
        let replica = master.start_replica().await;
        let pair = Self::Replicated(Arc::new([master, replica]));
        pair.with_documented_rights().await
    }

    /// A master under sentinels that do not mistake a busy machine for a dead master.
    pub async fn sentinels() -> Self {
        let group = SentinelGroup::builder().patient().start().await;
        Self::Sentinels(Arc::new(group))
            .with_documented_rights()
            .await
    }

    /// A cluster in which no replica takes over.
    pub async fn cluster() -> Self {
        let cluster = RedisCluster::start_patient().await;
        Self::Cluster(Arc::new(cluster))
            .with_documented_rights()
            .await
    }

    /// Three independent servers.
    pub async fn quorum() -> Self {
        let backend = Self::Quorum(Arc::new(RedisQuorum::start(3).await));
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
            Self::Redis(server) => std::slice::from_ref(&**server),
            Self::Replicated(pair) => &**pair,
            Self::Sentinels(group) => &group.servers,
            Self::Cluster(cluster) => &cluster.nodes,
            Self::Quorum(quorum) => &quorum.servers,
        }
    }

    /// The servers with locks that no other server has.
    fn masters(&self) -> &[RedisServer] {
        match self {
            Self::Replicated(pair) => &pair[..1],
            Self::Sentinels(group) => &group.servers[..1],
            Self::Cluster(cluster) => &cluster.nodes[..3],
            Self::Memory(_) | Self::Redis(_) | Self::Quorum(_) => self.servers(),
        }
    }

    /// The URL for a client that may do everything.
    ///
    /// # Panics
    /// For the embedded store, which has no URL.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Memory(_) => panic!("the embedded store has no URL"),
            Self::Redis(server) => server.url(),
            Self::Replicated(pair) => Self::confirmed(&pair[0], "250ms"),
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
            Self::Redis(server) => Self::as_user(&server.url()),
            Self::Replicated(pair) => Self::as_user(&Self::confirmed(&pair[0], "1s")),
            Self::Sentinels(group) => Self::as_user(&group.url()),
            Self::Cluster(cluster) => Self::as_user(&cluster.url()),
            Self::Quorum(quorum) => Self::as_user(&quorum.url()),
        }
    }

    fn confirmed(master: &RedisServer, within: &str) -> String {
        format!("{}?replicas=1&replicas_timeout={within}", master.url())
    }

    fn as_user(url: &str) -> LockClientBuilder {
        let url = url.replace("://", &format!("://{USER}:word@"));
        // Servers are slow now and then on a busy machine, and these tests are not about how soon
        // clients report that.
        LockClient::builder()
            .url(url)
            .command_timeout(Duration::from_secs(3))
            .connect_timeout(Duration::from_secs(10))
    }

    /// One more client, with the default settings.
    pub async fn client(&self) -> LockClient {
        self.builder().connect().await.expect("the store is up")
    }

    /// The number of locks, latches and places in queues in the store. Fence counters, which stay
    /// for a day, and remembered calls, which stay for two minutes, do not count.
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

    /// The server that has this name and can show what is stored there. `None` for the embedded
    /// store, and for a quorum, where several have it.
    pub async fn server_of(&self, name: &str) -> Option<&RedisServer> {
        match self {
            Self::Memory(_) | Self::Quorum(_) => None,
            Self::Redis(_) | Self::Replicated(_) | Self::Sentinels(_) => self.masters().first(),
            Self::Cluster(cluster) => Some(cluster.master_of(cluster.slot(name).await).await),
        }
    }

    /// The number of channels on which clients hear of their locks. Zero for the embedded store,
    /// which calls its clients directly.
    pub async fn channels(&self) -> usize {
        let mut heard = BTreeSet::new();
        for server in self.servers() {
            // Do not count messages between sentinels.
            let mut channels: Vec<String> = server.query(&["PUBSUB", "CHANNELS", "lock:*"]).await;
            if matches!(self, Self::Cluster(_)) {
                channels.extend(
                    server
                        .query::<Vec<String>>(&["PUBSUB", "SHARDCHANNELS"])
                        .await,
                );
            }
            // A client hears others as long as it is connected.
            channels.retain(|channel| !channel.contains("%client:"));
            heard.extend(channels);
        }
        heard.len()
    }

    /// Empties the store for the next test, when all clients are gone.
    ///
    /// # Panics
    /// If a client stays.
    pub async fn emptied(&self) {
        for server in self.servers() {
            crate::eventually("all clients are gone", async || {
                let clients: String = server.query(&["CLIENT", "LIST"]).await;
                let others = |line: &&str| {
                    !["cmd=client", "name=sentinel-", "flags=M", "flags=S"]
                        .iter()
                        .any(|known| line.contains(known))
                };
                clients.lines().find(others).is_none()
            })
            .await;
        }
        for master in self.masters() {
            master.command(&["FLUSHALL"]).await;
        }
        for server in self.servers() {
            server.command(&["ACL", "LOG", "RESET"]).await;
        }
    }

    /// Waits until the store is empty.
    pub async fn until_empty(&self) {
        crate::eventually("the store is empty", async || self.leftovers().await == 0).await;
    }
}

/// # Panics
/// If a client did something that the documented permissions do not allow.
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
