//! Redis under test: one server, a replica that confirms, sentinels, a cluster, a quorum.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{ClientId, Clock, Listener, Store};

use crate::redis_version;
use crate::{Asks, Backend, StoreUnderTest};
use crate::{PATIENT, redis_store};
use crate::{RedisCluster, RedisQuorum, RedisServer, SentinelGroup};

/// The user of the clients.
const USER: &str = "app";

/// Servers of Redis. Their clients have exactly the permissions that the page about Redis
/// documents.
#[derive(Debug)]
pub enum RedisBackend {
    /// A separate `redis-server` process for this test.
    Redis(RedisServer),
    /// A master, and a replica that must confirm each hold.
    Replicated(Box<[RedisServer; 2]>),
    /// A master with replicas under sentinels.
    Sentinels(SentinelGroup),
    /// Three masters with replicas.
    Cluster(RedisCluster),
    /// Three independent servers.
    Quorum(RedisQuorum),
}

impl RedisBackend {
    /// A new `redis-server`, which knows the clients' user when it is started again.
    pub async fn redis() -> Backend {
        let mut builder = RedisServer::builder().arg("--user");
        for word in user_rule() {
            builder = builder.arg(word);
        }
        let server = builder.start().await;
        Self::Redis(server).with_documented_rights().await
    }

    /// A master with a replica that confirms holds.
    pub async fn replicated() -> Backend {
        let master = RedisServer::start().await;
        let replica = master.start_replica().await;
        let pair = Self::Replicated(Box::new([master, replica]));
        pair.with_documented_rights().await
    }

    /// A master under sentinels that do not mistake a busy machine for a dead master.
    pub async fn sentinels() -> Backend {
        let group = SentinelGroup::builder().patient().start().await;
        Self::Sentinels(group).with_documented_rights().await
    }

    /// A cluster in which no replica takes over.
    pub async fn cluster() -> Backend {
        let cluster = RedisCluster::start_patient().await;
        Self::Cluster(cluster).with_documented_rights().await
    }

    /// Three independent servers.
    pub async fn quorum() -> Backend {
        let backend = Self::Quorum(RedisQuorum::start(3).await);
        backend.with_documented_rights().await
    }

    async fn with_documented_rights(self) -> Backend {
        let rule: Vec<_> = ["ACL", "SETUSER"].into_iter().chain(user_rule()).collect();
        for server in self.servers() {
            server.command(&rule).await;
        }
        Backend::new(self)
    }

    /// All servers that could have locks, replicas included.
    fn servers(&self) -> &[RedisServer] {
        match self {
            Self::Redis(server) => std::slice::from_ref(server),
            Self::Replicated(pair) => &pair[..],
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
            Self::Redis(_) | Self::Quorum(_) => self.servers(),
        }
    }

    /// The URL for a client that may do everything.
    fn url(&self) -> String {
        match self {
            Self::Redis(server) => server.url(),
            Self::Replicated(pair) => Self::confirmed(&pair[0], "250ms"),
            Self::Sentinels(group) => group.url(),
            Self::Cluster(cluster) => cluster.url(),
            Self::Quorum(quorum) => quorum.url(),
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
}

/// The clients' user, and what it may do.
fn user_rule() -> impl Iterator<Item = &'static str> {
    let user = [USER, "on", ">word"];
    let keys = ["~lock:*", "~other:*"];
    let rules = match redis_version() {
        (6, 0) => &["+hello"][..],
        _ => &["resetchannels", "&lock:*", "&other:*"],
    };
    let rights = crate::all_documented_rights();
    user.into_iter()
        .chain(keys)
        .chain(rules.iter().copied())
        .chain(rights)
}

impl StoreUnderTest for RedisBackend {
    fn builder(&self) -> LockClientBuilder {
        match self {
            Self::Redis(server) => Self::as_user(&server.url()),
            Self::Replicated(pair) => Self::as_user(&Self::confirmed(&pair[0], "1s")),
            Self::Sentinels(group) => Self::as_user(&group.url()),
            Self::Cluster(cluster) => Self::as_user(&cluster.url()),
            Self::Quorum(quorum) => Self::as_user(&quorum.url()),
        }
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        redis_store(&self.url(), "lock", id, listener, clock, PATIENT)
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async {
            let mut left = 0;
            for master in self.masters() {
                let keys = master.keys("*").await;
                let counts = |key: &&String| !key.contains("%fence") && !key.contains("%call");
                left += keys.iter().filter(counts).count();
            }
            left
        })
    }

    fn counts_latch_places_once(&self) -> bool {
        true
    }

    fn one_redis(&self) -> Option<&RedisServer> {
        match self {
            Self::Redis(server) => Some(server),
            _ => None,
        }
    }

    fn pause(&self) -> bool {
        self.one_redis().map(RedisServer::pause).is_some()
    }

    fn resume(&self) {
        self.one_redis().map(RedisServer::resume);
    }

    fn kill(&self) -> bool {
        self.one_redis().map(RedisServer::kill).is_some()
    }

    fn restart(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            if let Some(server) = self.one_redis() {
                server.restart().await;
            }
        })
    }

    /// On a quorum, several servers have it.
    fn server_of<'s>(&'s self, name: &'s str) -> Asks<'s, Option<&'s RedisServer>> {
        Box::pin(async move {
            match self {
                Self::Quorum(_) => None,
                Self::Redis(_) | Self::Replicated(_) | Self::Sentinels(_) => self.masters().first(),
                Self::Cluster(cluster) => Some(cluster.master_of(cluster.slot(name).await).await),
            }
        })
    }

    fn channels(&self) -> Asks<'_, usize> {
        Box::pin(async {
            let mut heard = BTreeSet::new();
            for server in self.servers() {
                // Do not count messages between sentinels.
                let own = ["PUBSUB", "CHANNELS", "lock:*"];
                let mut channels: Vec<String> = server.query(&own).await;
                if matches!(self, Self::Cluster(_)) {
                    let of_shards: Vec<String> = server.query(&["PUBSUB", "SHARDCHANNELS"]).await;
                    channels.extend(of_shards);
                }
                // A client hears others as long as it is connected.
                channels.retain(|channel| !channel.contains("%client:"));
                heard.extend(channels);
            }
            heard.len()
        })
    }

    fn is_emptied(&self) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        Box::pin(async {
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
            true
        })
    }
}

/// # Panics
/// If a client did something that the documented permissions do not allow.
impl Drop for RedisBackend {
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
