//! Time limits that stores and the engine share.

use std::time::Duration;

/// How long one command may take.
pub const DEFAULT_COMMAND_TIMEOUT: Duration = Duration::from_millis(500);
/// How long connecting, with its handshake, may take.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Shorter leases can't be renewed or trusted over a network.
pub const MIN_LEASE: Duration = Duration::from_millis(10);
/// Longer leases would make a crash cost a day.
pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// A waiter rechecks this often, in case a message was lost.
pub const FALLBACK_POLL: Duration = Duration::from_secs(1);
/// A wait queue that nobody touches for this long is forgotten; its waiters touch it every second.
pub const QUEUE_TTL: Duration = Duration::from_secs(60);
/// A waiting client that has not looked for this long counts as one that stands still. Looks are a
/// second apart.
pub const UNHEARD: Duration = Duration::from_secs(2);
/// How long a store remembers what it did for a call. So a repeat does it no second time.
///
/// No repeat counts once that is forgotten, however late it arrives. The first attempt is carried
/// out [`CALL_AHEAD`] before its own stamp at the earliest, the last one is sent 30 s after it (the
/// engine's `CALL_REPEATED`), and is valid for [`CALL_VALID`]: 30 s + 30 s + 60 s.
pub const CALL_REMEMBERED: Duration = Duration::from_secs(120);
/// How long after its sending a store still carries a call out, by the store's own clock.
pub const CALL_VALID: Duration = Duration::from_secs(60);
/// How far a call's stamp may be ahead of the store's clock.
pub const CALL_AHEAD: Duration = Duration::from_secs(30);
/// Back-off between attempts at a store that fails, and between reconnects.
pub const BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Upper end of the back-off.
pub const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// How long connecting, with its handshake, may take.
    pub connect: Duration,
    /// How long one command may take.
    pub command: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: DEFAULT_CONNECT_TIMEOUT,
            command: DEFAULT_COMMAND_TIMEOUT,
        }
    }
}

/// The part of a lease that is trusted. 1 % and 2 ms are left for clocks that run at different
/// rates, as in the Redlock implementations that follow the Redis documentation on distributed
/// locks.
pub fn trusted(lease: Duration) -> Duration {
    lease.saturating_sub(lease / 100 + Duration::from_millis(2))
}

/// How long to leave a failing store alone, after so many failures in a row.
pub fn backoff(failures: u32) -> Duration {
    BACKOFF_MIN
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_percent_and_two_milliseconds_are_not_trusted() {
        assert_eq!(
            trusted(Duration::from_secs(10)),
            Duration::from_millis(9898)
        );
    }
}
