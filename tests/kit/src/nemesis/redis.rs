//! [`RedisSetUp`]: one Redis, or several that work together.

use std::collections::BTreeSet;
use std::slice;

use super::clock_shim::ClockShim;
use super::wrongly;
use crate::{Proxy, RedisCluster, RedisQuorum, RedisServer, SentinelGroup};

/// Longer than any lease that the workers ask for, and than the first one of a hand-over.
const REJOIN_AFTER: &str = "3s";

/// One Redis, or several that work together. All but those of a quorum write each command to their
/// disk.
pub(super) enum RedisSetUp {
    One(RedisServer),
    /// Two replicas under sentinels, and whether both of them confirm each lock.
    Sentinels {
        group: SentinelGroup,
        confirmed: bool,
    },
    Cluster(RedisCluster),
    /// Three servers, which forget everything when they are restarted.
    Quorum(RedisQuorum),
}

/// Servers that grant locks, of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Masters {
    ports: BTreeSet<u16>,
    epoch: u64,
}

impl RedisSetUp {
    pub(super) async fn one(clock: Option<&ClockShim>) -> Self {
        let mut server = RedisServer::builder().appendonly(true);
        for (name, value) in clock.into_iter().flat_map(ClockShim::environment) {
            server = server.env(name, value);
        }
        Self::One(server.start().await)
    }

    pub(super) async fn sentinels(confirmed: bool) -> Self {
        let mut builder = SentinelGroup::builder();
        for word in ["--appendonly", "yes", "--appendfsync", "always"] {
            builder = builder.arg(word);
        }
        let group = builder.start().await;
        Self::Sentinels { group, confirmed }
    }

    pub(super) async fn cluster() -> Self {
        Self::Cluster(RedisCluster::start_durable().await)
    }

    pub(super) async fn quorum() -> Self {
        Self::Quorum(RedisQuorum::start(3).await)
    }

    /// All servers that can have locks.
    pub(super) fn servers(&self) -> &[RedisServer] {
        match self {
            Self::One(server) => slice::from_ref(server),
            Self::Sentinels { group, .. } => &group.servers,
            Self::Cluster(cluster) => &cluster.nodes,
            Self::Quorum(quorum) => &quorum.servers,
        }
    }

    /// A network for one client before each server, where servers don't tell clients the addresses
    /// of others.
    pub(super) async fn proxies(&self) -> Vec<Proxy> {
        let mut proxies = Vec::new();
        if matches!(self, Self::One(_) | Self::Quorum(_)) {
            for server in self.servers() {
                proxies.push(Proxy::start(server.addr()).await);
            }
        }
        proxies
    }

    /// The URL for a client behind these proxies.
    pub(super) fn url(&self, proxies: &[Proxy]) -> String {
        match self {
            Self::One(server) => match proxies {
                [proxy] => server.url_at(proxy.addr()),
                _ => server.url(),
            },
            Self::Sentinels { group, confirmed } => match confirmed {
                true => format!("{}?replicas=2&replicas_timeout=100ms", group.url()),
                false => group.url(),
            },
            Self::Cluster(cluster) => cluster.url(),
            Self::Quorum(_) => {
                let hosts: Vec<String> = proxies
                    .iter()
                    .map(|proxy| proxy.addr().to_string())
                    .collect();
                let hosts = hosts.join(",");
                format!("redis-quorum://{hosts}?rejoin_after={REJOIN_AFTER}")
            }
        }
    }

    /// The ports of the servers that grant locks, if others can take their places.
    pub(super) async fn masters(&self) -> BTreeSet<u16> {
        match self {
            Self::One(_) | Self::Quorum(_) => BTreeSet::new(),
            Self::Sentinels { group, .. } => [group.master().await.port()].into(),
            Self::Cluster(cluster) => cluster.masters().await,
        }
    }

    /// The masters, if others can take their places and all agree who they are. Until then, one
    /// that was replaced may still grant locks.
    pub(super) async fn settled_masters(&self) -> Option<Masters> {
        let (ports, epoch) = match self {
            Self::One(_) | Self::Quorum(_) => return None,
            Self::Sentinels { group, .. } => {
                let (master, epoch) = group.settled_master().await?;
                ([master].into(), epoch)
            }
            Self::Cluster(cluster) => cluster.settled_masters().await?,
        };
        Some(Masters { ports, epoch })
    }

    /// The places of the masters among the servers, if others can take over from them.
    pub(super) async fn masters_at(&self) -> Vec<usize> {
        let masters = self.masters().await;
        let is_master =
            |(at, server): (usize, &RedisServer)| masters.contains(&server.port()).then_some(at);
        self.servers()
            .iter()
            .enumerate()
            .filter_map(is_master)
            .collect()
    }

    /// Waits until all servers are there again, and agree on what each of them is.
    pub(super) async fn until_settled(&self) {
        match self {
            Self::One(_) | Self::Quorum(_) => {}
            Self::Sentinels { group, .. } => group.until_settled().await,
            Self::Cluster(cluster) => cluster.until_settled().await,
        }
    }

    /// One server comes back without its data, or all servers of a quorum are emptied.
    pub(super) async fn lose_data(&self) {
        match self {
            Self::One(server) => server.restart_empty().await,
            _ => {
                for server in self.servers() {
                    server.command(&["FLUSHALL"]).await;
                }
            }
        }
    }

    /// The keys that are there although nobody uses a lock. Fence counters don't count.
    pub(super) async fn leftovers(&self) -> Vec<String> {
        let masters = self.masters().await;
        let mut left = Vec::new();
        for server in self.servers() {
            if masters.is_empty() || masters.contains(&server.port()) {
                left.extend(server.keys("*").await);
            }
        }
        left.retain(|key| !key.contains("%fence") && !key.starts_with(wrongly::OWN));
        left
    }

    /// The clients that can hear of something. On a quorum, what can be heard.
    pub(super) async fn channels(&self) -> Vec<String> {
        let mut heard = BTreeSet::new();
        for server in self.servers() {
            heard.extend(server.grant_channels().await);
            if matches!(self, Self::Cluster(_)) {
                let words = ["PUBSUB", "SHARDCHANNELS"];
                heard.extend(server.query::<Vec<String>>(&words).await);
            }
        }
        // Sentinels talk over channels of their own.
        heard.retain(|name: &String| name.starts_with("lock:") && !name.contains("%client:"));
        // In a cluster a client has a channel for each node.
        let clients = heard.iter().filter_map(|name| name.rsplit(':').next());
        let clients: BTreeSet<&str> = clients.collect();
        clients.into_iter().map(str::to_owned).collect()
    }
}
