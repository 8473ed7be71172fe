//! [`Stats`]: a client's counters and states.

use std::time::Duration;

/// What a client does now, and what it has done since it was made; see
/// [`LockClient::stats`](crate::LockClient::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Locks that it holds. A nested hold is not counted.
    pub held: usize,
    /// Requests that wait or are being asked for, latches included.
    pub waiting: usize,
    /// How long the oldest of the requests for a lock waits by now.
    pub longest_waiting: Option<Duration>,
    /// Whether it has a connection: to any server of a cluster, to a majority of a quorum. On
    /// PostgreSQL, which connects when it is asked for something, this question has it connect.
    pub connected: bool,
    /// How long ago the last command was sent that the store has answered. `None` before the first.
    pub since_last_answer: Option<Duration>,
    /// Requests that the store granted in reply to their command.
    pub granted_by_store: u64,
    /// Requests that got their lock by the message of another client's release. Where that is a
    /// hint, as in a Redis Cluster, the store grants the lock when it is asked.
    pub handed_over: u64,
    /// Requests that got their lock from another task of this process.
    pub handed_off: u64,
    /// Requests that shared the hold of their call chain.
    pub nested: u64,
    /// Requests that ended with [`LockError::Busy`](crate::LockError::Busy).
    pub busy: u64,
    /// Requests that ended with [`LockError::Unavailable`](crate::LockError::Unavailable).
    pub unavailable: u64,
    /// Requests that ended with another error.
    pub refused: u64,
    /// Requests whose future was dropped before they ended.
    pub cancelled: u64,
    /// Holds that were lost.
    pub lost: u64,
    /// Holds that ended with their guard.
    pub released: u64,
    /// Releases that failed at first, or found their hold gone. A hold of several keys of a cluster
    /// has one at each of its servers, once its guard was dropped.
    pub release_failures: u64,
    /// Undos and releases under way in the background.
    pub undoing: usize,
}

impl Stats {
    /// Requests that got their lock, however.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.granted_by_store + self.handed_over + self.handed_off + self.nested
    }
}
