//! [`Servers`]: one server at a time, or the nodes of a cluster.

use std::sync::Arc;

use lock_store::{ConfigError, Failure, Instant, Link, StoreError, StoreErrorKind};

use crate::cluster::nodes::Cluster;
use crate::context::ClientContext;
use crate::topology::endpoint::Endpoint;
use crate::topology::url::Topology;
use crate::transport::connection::{Connection, Exchanged};
use crate::transport::script_or_command::Request;
use crate::transport::supervisor;

#[derive(Clone, Debug)]
pub(crate) enum Servers {
    /// All locks are on this server, or on the one that replaces it.
    One(Arc<Connection>),
    /// The locks of each slot are on one node.
    Cluster(Arc<Cluster>),
}

impl Servers {
    /// Starts to connect, in the background.
    pub(crate) fn open(topology: Topology, context: ClientContext) -> Result<Self, ConfigError> {
        let endpoint = match topology {
            Topology::Cluster { seeds, template } => {
                return Ok(Self::Cluster(Cluster::open(seeds, template, context)));
            }
            Topology::Server(server) => Endpoint::server(server)?,
            Topology::Sentinels {
                sentinels,
                name,
                master,
            } => Endpoint::master(sentinels, &name, master, context.timeouts.connect)?,
            Topology::Quorum { .. } => {
                return Err(ConfigError::new("a quorum is not one server"));
            }
        };
        Ok(Self::one(endpoint, context))
    }

    /// One server at a time, the one to which the endpoint leads.
    pub(crate) fn one(endpoint: Endpoint, context: ClientContext) -> Self {
        Self::One(supervisor::open(endpoint, context, Arc::default()))
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// True if the one server, or any node of a cluster, can be reached now.
    pub(crate) fn is_up(&self) -> bool {
        match self {
            Self::One(connection) => connection.is_up(),
            Self::Cluster(cluster) => cluster.is_up(),
        }
    }

    /// The link over which a request would be sent now. If that depends on the key, a
    /// link that nothing ever uses.
    pub(crate) fn link(&self) -> Link {
        match self {
            Self::One(connection) => connection.link(),
            Self::Cluster(_) => Link(0),
        }
    }

    /// Waits until the first attempt to connect has succeeded or failed.
    pub(crate) async fn await_first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        match self {
            Self::One(connection) => connection.await_first_attempt(by).await,
            Self::Cluster(cluster) => cluster.await_first_attempt(by).await,
        }
    }

    /// The connections to all servers that have locks, each with its address in a cluster's map.
    pub(crate) async fn masters(
        &self,
        by: Instant,
    ) -> Result<Vec<(String, Arc<Connection>)>, StoreError> {
        match self {
            Self::One(connection) => Ok(vec![(String::new(), Arc::clone(connection))]),
            Self::Cluster(cluster) => cluster.masters(by).await,
        }
    }

    /// Sends a request to the server that has the slot.
    pub(crate) async fn exchange(
        &self,
        slot: Option<u16>,
        by: Instant,
        request: &Request,
    ) -> Result<Exchanged, Failure> {
        match self {
            Self::One(connection) => connection.exchange(by, request, false).await,
            Self::Cluster(cluster) => {
                let Some(slot) = slot else {
                    let text = "a request to a cluster has no slot";
                    let error = StoreError::new(StoreErrorKind::Misconfigured, text);
                    return Err(Failure::without_effect(error));
                };
                Box::pin(cluster.exchange(slot, by, request)).await
            }
        }
    }

    /// Listens on another of the client's own channels, over all connections.
    pub(crate) fn subscribe(&self, channel: &str) {
        match self {
            Self::One(connection) => connection.subscribe(channel),
            Self::Cluster(cluster) => cluster.subscribe(channel),
        }
    }

    /// Listens on these of the client's own channels no longer, over all connections.
    pub(crate) fn unsubscribe(&self, channels: &[String]) {
        match self {
            Self::One(connection) => connection.unsubscribe(channels),
            Self::Cluster(cluster) => cluster.unsubscribe(channels),
        }
    }

    pub(crate) fn close(&self) {
        match self {
            Self::One(connection) => connection.close(),
            Self::Cluster(cluster) => cluster.close(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::One(connection) => connection.is_closed(),
            Self::Cluster(cluster) => cluster.is_closed(),
        }
    }
}
