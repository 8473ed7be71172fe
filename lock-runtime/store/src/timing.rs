//! Time limits that stores and the engine share.

use std::time::Duration;

use crate::instant::Instant;

/// The default time limit of a command.
pub const DEFAULT_COMMAND_TIMEOUT: Duration = Duration::from_millis(500);
/// The default time limit of connecting, including the handshake.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Shorter leases can't be renewed or trusted over a network.
pub const MIN_LEASE: Duration = Duration::from_millis(10);
/// With longer leases, a crash could block a key for more than a day.
pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// A waiter rechecks this often, in case a message was lost.
pub const FALLBACK_POLL: Duration = Duration::from_secs(1);
/// The store forgets a wait queue that nobody uses for this long. Waiters use it every second.
pub const QUEUE_TTL: Duration = Duration::from_secs(60);
/// A waiting client that did not ask again for this long counts as standing still. Waiters ask
/// every second.
pub const UNHEARD: Duration = Duration::from_secs(2);
/// How long a store remembers what it did for a call, so that a repeat does not do it again.
///
/// When that is forgotten, no repeat counts any more, however late it arrives. The store carries
/// out the first attempt at the earliest [`CALL_AHEAD`] before its stamp. The last attempt is sent
/// 30 s after the stamp (the engine's `CALL_REPEATED`), and is valid for [`CALL_VALID`]: 30 s + 30
/// s + 60 s.
pub const CALL_REMEMBERED: Duration = Duration::from_secs(120);
/// How long after its sending a store still carries out a call, on the store's own clock.
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
    /// The time limit of connecting, including the handshake.
    pub connect: Duration,
    /// The time limit of one command.
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

/// The part of a lease that is trusted: all but 1 % and 2 ms. These are for clocks that run at
/// different rates, as in the Redlock implementations that follow the Redis documentation on
/// distributed locks.
pub fn trusted(lease: Duration) -> Duration {
    lease.saturating_sub(lease / 100 + Duration::from_millis(2))
}

/// How much longer than it is trusted a store may keep a lease, on clocks of different rates.
pub fn drift_margin(lease: Duration) -> Duration {
    lease / 50
}

/// Whether a command sent at `sent` had so little time that its silence says nothing about the
/// store or its connection: less than nine tenths of what a command may take.
pub fn is_cut(sent: Instant, by: Instant, command_timeout: Duration) -> bool {
    by < sent + command_timeout - command_timeout / 10
}

/// When a waiter asks again without a message, if the holder has this much of its lease left. In
/// at most [`FALLBACK_POLL`], which keeps its place.
pub fn recheck_in(remaining: Option<Duration>) -> Duration {
    remaining.map_or(FALLBACK_POLL, |remaining| {
        FALLBACK_POLL.min(remaining + Duration::from_millis(1))
    })
}

/// How long to leave a failing store alone after this many failures in a row.
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
