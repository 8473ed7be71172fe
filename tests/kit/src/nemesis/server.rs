//! [`Server`]: what keeps the locks of a run.

use std::net::{Ipv4Addr, SocketAddr};

use super::Fault;
use super::clock_shim::ClockShim;
use super::redis::RedisSetUp;
#[cfg(target_os = "linux")]
use crate::SqliteFile;
use crate::{EtcdCluster, PostgresServer, Proxy, RedisServer, StoreUnderTest, ZooKeeperEnsemble};

/// What keeps the locks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A `redis-server` that writes each command to its disk.
    Redis,
    /// A master and two replicas under sentinels.
    Sentinel,
    /// The same, where both replicas confirm each lock.
    Replicas,
    /// Three masters with a replica each.
    Cluster,
    /// Three independent servers without persistence.
    Quorum,
    /// A PostgreSQL server.
    Postgres,
    /// A SQLite database.
    #[cfg(target_os = "linux")]
    Sqlite,
    /// A cluster of three etcd servers.
    Etcd,
    /// An ensemble of three ZooKeeper servers.
    ZooKeeper,
}

impl Engine {
    /// All of them, by the names that a command line has for them.
    pub const NAMED: &[(&str, Self)] = &[
        ("redis", Self::Redis),
        ("sentinel", Self::Sentinel),
        ("replicas", Self::Replicas),
        ("cluster", Self::Cluster),
        ("quorum", Self::Quorum),
        ("postgres", Self::Postgres),
        #[cfg(target_os = "linux")]
        ("sqlite", Self::Sqlite),
        ("etcd", Self::Etcd),
        ("zookeeper", Self::ZooKeeper),
    ];

    /// Whether it can have this fault.
    #[must_use]
    pub fn can_have(self, fault: Fault) -> bool {
        let of_one_redis = matches!(fault, Fault::Evict | Fault::ClockAhead | Fault::ClockBehind);
        match self {
            Self::Redis => fault != Fault::Failover,
            Self::Quorum => !of_one_redis && fault != Fault::Failover,
            // Their servers tell clients where the others are, so no network lies between.
            Self::Sentinel | Self::Replicas | Self::Cluster => {
                !of_one_redis && !fault.is_of_network() && fault != Fault::LoseData
            }
            Self::Postgres => {
                fault.is_anywhere()
                    || matches!(
                        fault,
                        Fault::ServerStop
                            | Fault::ServerKill
                            | Fault::ServerRestart
                            | Fault::KillNormal
                    )
            }
            // Nobody reads its requests.
            Self::Etcd => {
                fault.is_anywhere() && fault != Fault::CutAfterRequest
                    || matches!(
                        fault,
                        Fault::ServerStop | Fault::ServerKill | Fault::ServerRestart
                    )
            }
            Self::ZooKeeper => {
                fault.is_anywhere()
                    || matches!(
                        fault,
                        Fault::ServerStop | Fault::ServerKill | Fault::ServerRestart
                    )
            }
            #[cfg(target_os = "linux")]
            Self::Sqlite => matches!(fault, Fault::ClientStop | Fault::ClientKill),
        }
    }

    /// Whether others can have the lock of a client that stands still before it goes on. On etcd,
    /// the leases of its servers are seconds longer than those of the locks, and on ZooKeeper
    /// sessions are.
    pub(super) fn frees_soon(self) -> bool {
        !matches!(self, Self::Etcd | Self::ZooKeeper)
    }

    /// Whether another server can take the place of one that is gone.
    #[must_use]
    pub fn has_failovers(self) -> bool {
        matches!(self, Self::Sentinel | Self::Replicas | Self::Cluster)
    }

    /// Whether the next master may lack locks that the last one has granted.
    pub(super) fn forgets_at_failover(self) -> bool {
        matches!(self, Self::Sentinel | Self::Cluster)
    }
}

pub(super) enum Server {
    Redis(RedisSetUp),
    Postgres(PostgresServer),
    #[cfg(target_os = "linux")]
    Sqlite(SqliteFile),
    Etcd(EtcdCluster),
    ZooKeeper(ZooKeeperEnsemble),
}

/// Trusted for as long as the locks' leases.
const SESSION: &str = "?tick=500ms&session=4s";

impl Server {
    pub(super) async fn start(engine: Engine, clock: Option<&ClockShim>) -> Self {
        match engine {
            Engine::Redis => Self::Redis(RedisSetUp::one(clock).await),
            Engine::Sentinel => Self::Redis(RedisSetUp::sentinels(false).await),
            Engine::Replicas => Self::Redis(RedisSetUp::sentinels(true).await),
            Engine::Cluster => Self::Redis(RedisSetUp::cluster().await),
            Engine::Quorum => Self::Redis(RedisSetUp::quorum().await),
            Engine::Postgres => Self::Postgres(PostgresServer::start().await),
            #[cfg(target_os = "linux")]
            Engine::Sqlite => Self::Sqlite(SqliteFile::new()),
            Engine::Etcd => Self::Etcd(EtcdCluster::with_users(3).await),
            Engine::ZooKeeper => Self::ZooKeeper(ZooKeeperEnsemble::three_quick().await),
        }
    }

    /// Its servers of Redis, if it has any.
    pub(super) fn redis(&self) -> Option<&RedisSetUp> {
        match self {
            Self::Redis(redis) => Some(redis),
            _ => None,
        }
    }

    /// How many servers a fault can meet.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Redis(redis) => redis.servers().len(),
            Self::Etcd(cluster) => cluster.ports().len(),
            Self::ZooKeeper(servers) => servers.ports().len(),
            _ => 1,
        }
    }

    /// One of its servers of Redis, for the faults that only they have.
    pub(super) fn redis_server(&self, at: usize) -> &RedisServer {
        let redis = self.redis().expect("this fault is Redis' own");
        &redis.servers()[at]
    }

    /// The networks before it for one client.
    pub(super) async fn proxies(&self) -> Vec<Proxy> {
        match self {
            Self::Redis(redis) => redis.proxies().await,
            Self::Postgres(server) => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
                vec![Proxy::start_postgres(address).await]
            }
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => Vec::new(),
            Self::Etcd(cluster) => {
                let mut proxies = Vec::new();
                for port in cluster.ports() {
                    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                    proxies.push(Proxy::start_unread(address).await);
                }
                proxies
            }
            Self::ZooKeeper(servers) => {
                let mut proxies = Vec::new();
                for port in servers.ports() {
                    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                    proxies.push(Proxy::start_zookeeper(address).await);
                }
                proxies
            }
        }
    }

    /// The URL for a client behind these networks.
    pub(super) fn url(&self, proxies: &[Proxy]) -> String {
        match self {
            Self::Redis(redis) => redis.url(proxies),
            Self::Postgres(server) => match proxies {
                [proxy] => server.app_url_at(proxy.addr()),
                _ => server.app_url(),
            },
            #[cfg(target_os = "linux")]
            Self::Sqlite(file) => file.url(),
            Self::Etcd(cluster) if proxies.is_empty() => cluster.url(""),
            Self::Etcd(cluster) => {
                let ports = proxies.iter().map(|proxy| proxy.addr().port());
                cluster.url_at(&ports.collect::<Vec<_>>(), "")
            }
            Self::ZooKeeper(servers) if proxies.is_empty() => servers.url(SESSION),
            Self::ZooKeeper(servers) => {
                let ports = proxies.iter().map(|proxy| proxy.addr().port());
                servers.url_at(&ports.collect::<Vec<_>>(), SESSION)
            }
        }
    }

    pub(super) fn pause(&self, at: usize) {
        match self {
            Self::Redis(_) => self.redis_server(at).pause(),
            Self::Postgres(server) => server.pause(),
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
            Self::Etcd(cluster) => cluster.pause_member(at),
            Self::ZooKeeper(servers) => servers.pause_member(at),
        }
    }

    pub(super) fn resume(&self, at: usize) {
        match self {
            Self::Redis(_) => self.redis_server(at).resume(),
            Self::Postgres(server) => server.resume(),
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
            Self::Etcd(cluster) => cluster.resume_member(at),
            Self::ZooKeeper(servers) => servers.resume_member(at),
        }
    }

    pub(super) fn kill(&self, at: usize) {
        match self {
            Self::Redis(_) => self.redis_server(at).kill(),
            Self::Postgres(server) => server.kill(),
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
            Self::Etcd(cluster) => cluster.kill_member(at),
            Self::ZooKeeper(servers) => servers.kill_member(at),
        }
    }

    /// Ends it in good order.
    pub(super) async fn stop(&self, at: usize) {
        match self {
            Self::Redis(_) => self.redis_server(at).stop().await,
            Self::Postgres(server) => server.stop().await,
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
            Self::Etcd(cluster) => cluster.stop_member(at).await,
            Self::ZooKeeper(servers) => servers.stop_member(at).await,
        }
    }

    pub(super) async fn restart(&self, at: usize) {
        match self {
            Self::Redis(_) => self.redis_server(at).restart().await,
            Self::Postgres(server) => server.restart().await,
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
            Self::Etcd(cluster) => cluster.restart_member(at).await,
            Self::ZooKeeper(servers) => servers.restart_member(at).await,
        }
    }

    /// Ends every connection.
    pub(super) async fn end_connections(&self, at: usize) {
        match self {
            Self::Redis(_) => {
                let words = ["CLIENT", "KILL", "TYPE", "normal"];
                self.redis_server(at).command(&words).await;
            }
            Self::Postgres(server) => server.end_connections().await,
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
            Self::Etcd(_) | Self::ZooKeeper(_) => {}
        }
    }

    /// What is there although nobody uses a lock. Fence counters don't count.
    pub(super) async fn leftovers(&self) -> Vec<String> {
        match self {
            Self::Redis(redis) => redis.leftovers().await,
            Self::Postgres(server) => rows(StoreUnderTest::leftovers(server).await),
            #[cfg(target_os = "linux")]
            Self::Sqlite(file) => rows(file.leftovers()),
            Self::Etcd(cluster) => rows(StoreUnderTest::leftovers(cluster).await),
            Self::ZooKeeper(servers) => rows(StoreUnderTest::leftovers(servers).await),
        }
    }

    /// What is not the same at all of its members, of those that can forget what they have
    /// acknowledged.
    pub(super) async fn differences(&self) -> Vec<String> {
        let Self::ZooKeeper(servers) = self else {
            return Vec::new();
        };
        let mut members = servers.session_at_each().await;
        let differences = servers.differences(&mut members).await;
        for member in members {
            member.close().await;
        }
        differences
    }

    /// The clients that can hear of something.
    pub(super) async fn channels(&self) -> Vec<String> {
        match self {
            Self::Redis(redis) => redis.channels().await,
            Self::Postgres(server) => rows(server.channels().await),
            #[cfg(target_os = "linux")]
            Self::Sqlite(file) => rows(file.clients_present()),
            Self::Etcd(cluster) => rows(cluster.channels().await),
            Self::ZooKeeper(servers) => rows(servers.channels().await),
        }
    }
}

fn rows(count: usize) -> Vec<String> {
    (0..count).map(|row| format!("row {row}")).collect()
}
