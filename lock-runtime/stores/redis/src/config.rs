//! Numbers of Redis, and what its replicas have to confirm.

use std::time::Duration;

use lock_store::ConfigError;

/// After so long without traffic, the system asks whether the other side of a connection is there.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(20);
/// The pause between two such questions, when one is not answered.
pub(crate) const KEEPALIVE_AGAIN: Duration = Duration::from_secs(5);
/// How often the sentinels are asked whether the master is still the master.
pub(crate) const MASTER_CHECK: Duration = Duration::from_secs(1);
/// The pause between two questions to a cluster for its map of slots.
pub(crate) const CLUSTER_MAP_PAUSE: Duration = Duration::from_millis(100);
/// How long messages of a slot are not believed after some of its keys were seen on their way to
/// another node.
pub(crate) const SLOT_MOVES: Duration = Duration::from_secs(10);
/// How long a server of a quorum does not count after a restart. No lease of the quorum is longer.
pub(crate) const REJOIN_AFTER: Duration = Duration::from_secs(60);
/// A larger difference between wall clocks is a finding.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);
/// How long replicas may take to confirm a hold, if a URL does not say.
pub(crate) const REPLICAS_TIMEOUT: Duration = Duration::from_millis(100);

/// How many replicas must have each hold, and how long they may take to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// How many.
    pub count: u32,
    /// Within which time, at each hold.
    pub timeout: Duration,
}

impl Replicas {
    /// Refuses what would confirm nothing, or never answer in time.
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
        // An acquire may have to wait for the confirmation of others before its own.
        if timeout > command_timeout / 2 {
            return Err(ConfigError::new(format!(
                "the timeout of `replicas` ({timeout:?}) is more than half of `command_timeout` ({command_timeout:?}), \
                 within which an acquire must be answered: make the one shorter or the other longer"
            )));
        }
        Ok(self)
    }
}
