//! [`Server`]: what keeps the locks of a run.

use std::net::{Ipv4Addr, SocketAddr};

use super::Fault;
use super::clock_shim::ClockShim;
use super::wrongly;
#[cfg(target_os = "linux")]
use crate::SqliteFile;
use crate::{PostgresServer, Proxy, RedisServer, StoreUnderTest};

/// What keeps the locks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A `redis-server` that writes each command to its disk.
    Redis,
    /// A PostgreSQL server.
    Postgres,
    /// A SQLite database.
    #[cfg(target_os = "linux")]
    Sqlite,
}

impl Engine {
    /// Whether it can have this fault.
    #[must_use]
    pub fn can_have(self, fault: Fault) -> bool {
        match self {
            Self::Redis => true,
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
            #[cfg(target_os = "linux")]
            Self::Sqlite => matches!(fault, Fault::ClientStop | Fault::ClientKill),
        }
    }
}

pub(super) enum Server {
    Redis(RedisServer),
    Postgres(PostgresServer),
    #[cfg(target_os = "linux")]
    Sqlite(SqliteFile),
}

impl Server {
    pub(super) async fn start(engine: Engine, clock: Option<&ClockShim>) -> Self {
        match engine {
            Engine::Redis => {
                let mut server = RedisServer::builder().appendonly(true);
                for (name, value) in clock.into_iter().flat_map(ClockShim::environment) {
                    server = server.env(name, value);
                }
                Self::Redis(server.start().await)
            }
            Engine::Postgres => Self::Postgres(PostgresServer::start().await),
            #[cfg(target_os = "linux")]
            Engine::Sqlite => Self::Sqlite(SqliteFile::new()),
        }
    }

    /// For the faults that only Redis has.
    pub(super) fn redis(&self) -> &RedisServer {
        match self {
            Self::Redis(server) => server,
            _ => panic!("this fault is Redis' own"),
        }
    }

    /// The network before it, if there is one.
    pub(super) async fn proxy(&self) -> Option<Proxy> {
        match self {
            Self::Redis(server) => Some(Proxy::start(server.addr()).await),
            Self::Postgres(server) => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
                Some(Proxy::start_postgres(address).await)
            }
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => None,
        }
    }

    /// The URL for a client behind this network.
    pub(super) fn url(&self, proxy: Option<&Proxy>) -> String {
        match (self, proxy) {
            (Self::Redis(server), Some(proxy)) => server.url_at(proxy.addr()),
            (Self::Redis(server), None) => server.url(),
            (Self::Postgres(server), Some(proxy)) => server.app_url_at(proxy.addr()),
            (Self::Postgres(server), None) => server.app_url(),
            #[cfg(target_os = "linux")]
            (Self::Sqlite(file), _) => file.url(),
        }
    }

    pub(super) fn pause(&self) {
        match self {
            Self::Redis(server) => server.pause(),
            Self::Postgres(server) => server.pause(),
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
        }
    }

    pub(super) fn resume(&self) {
        match self {
            Self::Redis(server) => server.resume(),
            Self::Postgres(server) => server.resume(),
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
        }
    }

    pub(super) fn kill(&self) {
        match self {
            Self::Redis(server) => server.kill(),
            Self::Postgres(server) => server.kill(),
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
        }
    }

    /// Ends it in good order.
    pub(super) async fn stop(&self) {
        match self {
            Self::Redis(server) => server.stop().await,
            Self::Postgres(server) => server.stop().await,
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
        }
    }

    pub(super) async fn restart(&self) {
        match self {
            Self::Redis(server) => server.restart().await,
            Self::Postgres(server) => server.restart().await,
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
        }
    }

    /// Ends every connection.
    pub(super) async fn end_connections(&self) {
        match self {
            Self::Redis(server) => {
                server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
            }
            Self::Postgres(server) => server.end_connections().await,
            #[cfg(target_os = "linux")]
            Self::Sqlite(_) => {}
        }
    }

    /// What is there although nobody uses a lock. Fence counters don't count.
    pub(super) async fn leftovers(&self) -> Vec<String> {
        let count = match self {
            Self::Redis(server) => {
                let mut keys = server.keys("*").await;
                keys.retain(|key| !key.contains("%fence") && !key.starts_with(wrongly::OWN));
                return keys;
            }
            Self::Postgres(server) => StoreUnderTest::leftovers(server).await,
            #[cfg(target_os = "linux")]
            Self::Sqlite(file) => file.leftovers(),
        };
        rows(count)
    }

    /// The clients that can hear of something.
    pub(super) async fn channels(&self) -> Vec<String> {
        match self {
            Self::Redis(server) => server.grant_channels().await,
            Self::Postgres(server) => rows(server.channels().await),
            #[cfg(target_os = "linux")]
            Self::Sqlite(file) => rows(file.hearers()),
        }
    }
}

fn rows(count: usize) -> Vec<String> {
    (0..count).map(|row| format!("row {row}")).collect()
}
