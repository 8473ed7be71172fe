//! Time constants for Redis, and the confirmation by replicas.

use std::time::Duration;

use lock_store::{ClientId, ConfigError};

/// After this time without traffic, the system checks that the other side of a connection is there.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(20);
/// The pause before the system repeats a check that was not answered.
pub(crate) const KEEPALIVE_AGAIN: Duration = Duration::from_secs(5);
/// How often the sentinels are asked for the master.
pub(crate) const MASTER_CHECK: Duration = Duration::from_secs(1);
/// The pause between two requests for a cluster's map of slots.
pub(crate) const CLUSTER_MAP_PAUSE: Duration = Duration::from_millis(100);
/// How long what one node says of a slot that has moved counts more than what most nodes say.
pub(crate) const MOVE_SPREADS: Duration = Duration::from_secs(2);
/// After a restart, a server of a quorum does not count for this time. No lease of the quorum is
/// longer.
pub(crate) const REJOIN_AFTER: Duration = Duration::from_secs(60);
/// A larger difference between wall clocks is reported as a finding.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);
/// How much longer a release may take if the server is slow but answers. To repeat it would only
/// add to the work of such a server.
pub(crate) const RELEASE_PATIENCE: Duration = Duration::from_secs(10);
/// Another library's client is expected at a key for this time after it was last seen there.
pub(crate) const SEEN_FOR: Duration = Duration::from_secs(10);
/// The default of how long replicas may take to confirm a hold.
pub(crate) const REPLICAS_TIMEOUT: Duration = Duration::from_millis(100);

/// What the connections of a client are for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Needs {
    /// Locks of this client.
    Locks(ClientId),
    /// Renewals, which replicas confirm.
    Confirmation,
}

/// How many replicas must confirm each hold, and how long they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// The number of replicas.
    pub count: u32,
    /// The time limit for each hold.
    pub timeout: Duration,
}

impl Replicas {
    /// Refuses settings that would confirm nothing, or never in time.
    pub fn check(self, command_timeout: Duration) -> Result<Self, ConfigError> {
        let Self { count, timeout } = self;
        if count == 0 {
            return Err(ConfigError::new(
                "`replicas` is 0, which confirms nothing; ask for 1 or more, or leave it out",
            ));
        }
        if timeout.is_zero() {
            return Err(ConfigError::new(
                "the timeout of `replicas` is zero; give the replicas some time, as 100 ms",
            ));
        }
        // An acquire may first have to wait for another one's confirmation.
        if timeout > command_timeout / 2 {
            return Err(ConfigError::new(format!(
                "the timeout of `replicas` ({timeout:?}) is more than half of `command_timeout` \
                 ({command_timeout:?}), within which an acquire must be answered: make the one \
                 shorter or the other longer"
            )));
        }
        Ok(self)
    }
}
