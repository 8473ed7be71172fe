//! Where a connection leads, and whether it has got there.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_store::{Clock, StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError, Value};

use super::errors;
use super::roster::Seat;
use super::sentinel::Sentinels;
use crate::config::MASTER_CHECK;

/// What a connection is made to, each time anew.
pub(super) enum Target {
    /// One server.
    Server(Client),
    /// One node of a cluster.
    Node(Client),
    /// Whichever server is the master by the word of its sentinels.
    Master(Sentinels),
    /// One server of a quorum.
    Member(Client, Seat),
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A new connection, and which master it leads to.
pub(super) struct Reached {
    pub(super) connection: MultiplexedConnection,
    /// What makes another connection to the same server.
    pub(super) client: Arc<Client>,
    master: Option<Place>,
    /// Of a server of a quorum: from when on it counts.
    pub(super) counts_from: Option<Instant>,
}

impl Target {
    pub(super) async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> Result<Reached, StoreError> {
        let (client, master) = match self {
            Self::Server(client) | Self::Node(client) | Self::Member(client, _) => {
                (client.clone(), None)
            }
            Self::Master(sentinels) => {
                let master = sentinels.master().await?;
                (client_at(sentinels.template(), &master)?, Some(master))
            }
        };
        let (client, mut connection) = connect(&client, config).await?;
        let hello = Hello::of(&mut connection).await;
        let hello = hello.map_err(|error| errors::store_error(&error))?;
        match self {
            Self::Node(_) => hello.expect_cluster()?,
            Self::Server(_) | Self::Master(_) | Self::Member(..) => hello.expect("standalone")?,
        }
        if let Some(master) = &master
            && hello.is_replica
        {
            return Err(demoted(master));
        }
        let counts_from = match self {
            Self::Member(_, seat) => Some(seat.take(&mut connection).await?),
            _ => None,
        };
        Ok(Reached {
            connection,
            client: Arc::new(client),
            master,
            counts_from,
        })
    }

    /// Why there is no connection, if connecting takes too long.
    pub(super) fn silent(&self) -> StoreError {
        let to = match self {
            Self::Server(client) | Self::Node(client) | Self::Member(client, _) => {
                client.get_connection_info()
            }
            Self::Master(sentinels) => sentinels.template(),
        };
        errors::silent("it does not answer in time", to)
    }

    /// Resolves when a connection should be left although it works: the sentinels have chosen another master, or it leads
    /// to a replica. A stopped master that goes on knows nothing of its successor, and neither says so nor closes the
    /// connection; nor does it notice that nobody sends anything.
    pub(super) async fn outdated(
        &self,
        reached: &mut Reached,
        clock: &Clock,
        command_timeout: Duration,
    ) -> StoreError {
        let (Self::Master(sentinels), Some(master)) = (self, &reached.master) else {
            return std::future::pending().await;
        };
        let mut silent = false;
        loop {
            clock.sleep_until(clock.now() + MASTER_CHECK).await;
            let by = clock.now() + command_timeout;
            let hello = clock.by(by, Hello::of(&mut reached.connection));
            let named = clock.by(by, sentinels.master());
            let (hello, named) = tokio::join!(hello, named);
            match named {
                Some(Ok(named)) if named != *master => {
                    return StoreError::new(
                        StoreErrorKind::Disconnected,
                        format!("the sentinels have a new master, {named}, instead of {master}"),
                    );
                }
                // As long as nobody knows better, the connection may be good.
                _ => {}
            }
            match hello {
                Some(Ok(hello)) if hello.is_replica => return demoted(master),
                Some(Err(error)) if errors::kind(&error) == StoreErrorKind::Disconnected => {
                    return errors::store_error(&error);
                }
                None if silent => {
                    let text = format!("the master {master} does not answer");
                    return StoreError::new(StoreErrorKind::Timeout, text);
                }
                None => silent = true,
                Some(_) => silent = false,
            }
        }
    }
}

/// Connects to the first address of a name that can be connected to. What comes back leads to that address only.
async fn connect(
    client: &Client,
    config: &AsyncConnectionConfig,
) -> Result<(Client, MultiplexedConnection), StoreError> {
    let info = client.get_connection_info();
    let mut clients = Vec::new();
    if let ConnectionAddr::Tcp(host, port) = info.addr()
        && !is_pinned(client)
    {
        let found = tokio::net::lookup_host((host.as_str(), *port)).await;
        let found = found.map_err(|error| errors::store_error(&error.into()))?;
        for address in found {
            let (host, port) = (address.ip().to_string(), address.port());
            clients.push(client_at(info, &Place { host, port })?);
        }
    }
    if clients.is_empty() {
        clients.push(client.clone());
    }
    let mut failed = None;
    for client in clients {
        match client
            .get_multiplexed_async_connection_with_config(config)
            .await
        {
            Ok(connection) => return Ok((client, connection)),
            Err(error) => failed = Some(errors::not_connected(&error, info)),
        }
    }
    Err(failed.unwrap_or_else(|| {
        let text = "its name has no address";
        StoreError::new(StoreErrorKind::Disconnected, text)
    }))
}

/// Whether every connection of a client leads to the same address. The name of a TLS server does not: it is in the
/// certificate.
pub(super) fn is_pinned(client: &Client) -> bool {
    match client.get_connection_info().addr() {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => {
            host.parse::<std::net::IpAddr>().is_ok()
        }
        _ => true,
    }
}

fn demoted(master: &Place) -> StoreError {
    let text = format!("{master} is a replica; its sentinels have not said yet who is the master");
    StoreError::new(StoreErrorKind::ReadOnly, text)
}

/// What a server says of itself. Every user may ask (`HELLO` needs no permission, which `ROLE` and `INFO` do).
pub(super) struct Hello {
    mode: String,
    pub(super) version: String,
    pub(super) is_replica: bool,
}

impl Hello {
    pub(super) async fn of(connection: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        let said: HashMap<String, Value> = redis::cmd("HELLO").query_async(connection).await?;
        let word = |name: &str| match said.get(name) {
            Some(Value::BulkString(word)) => String::from_utf8_lossy(word).into_owned(),
            Some(Value::SimpleString(word)) => word.clone(),
            // A server that is silent about it is taken for what it should be.
            _ => String::new(),
        };
        Ok(Self {
            mode: word("mode"),
            version: word("version"),
            is_replica: matches!(word("role").as_str(), "replica" | "slave"),
        })
    }

    pub(super) fn is_replica(&self) -> bool {
        self.is_replica
    }

    /// The same for a node of a cluster, which must be able to tell a message to one node and not to all.
    fn expect_cluster(&self) -> Result<(), StoreError> {
        self.expect("cluster")?;
        let major = self.version.split('.').next().unwrap_or_default();
        if major.parse::<u32>().is_ok_and(|major| major < 7) {
            let text = format!(
                "a cluster needs Redis 7.0 or later, and this is {}",
                self.version
            );
            return Err(StoreError::new(StoreErrorKind::Misconfigured, text));
        }
        Ok(())
    }

    /// Whether the server is what the URL says.
    pub(super) fn expect(&self, mode: &str) -> Result<(), StoreError> {
        if self.mode.is_empty() || self.mode == mode {
            return Ok(());
        }
        let (is, instead) = match self.mode.as_str() {
            "cluster" => (
                "a node of a Redis Cluster",
                "`redis-cluster://host:port,…` (its nodes)",
            ),
            "sentinel" => (
                "a sentinel",
                "`redis-sentinel://host:port,…/master-name` (all sentinels)",
            ),
            _ => ("a server of its own", "`redis://host:port`"),
        };
        Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            format!("it is {is}, for which the URL is {instead}"),
        ))
    }
}

/// The same server settings for another place.
pub(super) fn client_at(template: &ConnectionInfo, place: &Place) -> Result<Client, StoreError> {
    let (host, port) = (place.host.clone(), place.port);
    let addr = match template.addr() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    Client::open(template.clone().set_addr(addr)).map_err(|error| errors::store_error(&error))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_lead_elsewhere_and_an_address_can_not() {
        let pinned = |url: &str| is_pinned(&Client::open(url).unwrap());
        for url in [
            "redis://127.0.0.1/",
            "redis://[::1]:7000/2",
            "redis+unix:///tmp/redis.sock",
        ] {
            assert!(pinned(url), "{url}");
        }
        assert!(!pinned("redis://localhost/") && !pinned("redis://u:p@redis.internal:7000/"));
    }
}
