//! How a client is doing.

use std::time::Duration;

use lock_store::ServerHealth;

/// How a client is doing; see [`LockClient::health`](crate::LockClient::health).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// How long the store took to answer just now. In a cluster, the slowest master that answered.
    pub round_trip: Duration,
    /// Locks that this client holds.
    pub held: usize,
    /// Requests of this client that wait.
    pub waiting: usize,
    /// Holds that were lost since the client was made.
    pub lost: u64,
    /// Releases that failed at first, or found their hold gone, since the client was made; see
    /// [`Stats::release_failures`](crate::observe::Stats::release_failures).
    pub release_failures: u64,
    /// The servers that have the locks: one, each master of a Redis Cluster, or each server of a
    /// quorum, of ZooKeeper or of etcd that the URL names. Those that do not answer are included.
    /// `LockClient::in_memory()` has none. The URL `memory:` has one that says so
    /// ([`Finding::InProcess`](crate::Finding::InProcess)).
    pub servers: Vec<ServerHealth>,
}
