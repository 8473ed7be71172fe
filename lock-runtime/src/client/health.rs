//! How a client is doing.

use std::time::Duration;

use lock_store::ServerHealth;

/// How a client is doing; see [`LockClient::health`](crate::LockClient::health).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// How long the store took to answer just now; of a cluster of which a master does not answer, the slowest other.
    pub round_trip: Duration,
    /// Locks that this client holds.
    pub held: usize,
    /// Requests of this client that wait.
    pub waiting: usize,
    /// Holds that were lost since the client was made.
    pub lost: u64,
    /// Releases that failed at first, or found their hold gone, since the client was made.
    pub release_failures: u64,
    /// The servers that have the locks: one, each master of a cluster, or each server of a quorum, those that do not answer
    /// included. None of `LockClient::in_memory()`; for the URL
    /// `memory:` one that says so ([`Finding::InProcess`](crate::Finding::InProcess)).
    pub servers: Vec<ServerHealth>,
}
