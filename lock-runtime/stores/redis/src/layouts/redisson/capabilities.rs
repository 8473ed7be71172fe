//! What Redisson's locks can carry.

use std::time::Duration;

use lock_store::{Ability, Capabilities, ConfigError, Hears};

use crate::topology::url::Topology;

/// Of the servers themselves, `own`.
pub(super) fn capabilities(own: Capabilities) -> Capabilities {
    let mut can = own;
    let no_limit = "the layout `redisson` has no rate limiters: an `RRateLimiter` counts by the \
                    clocks of its clients; use a client without a layout for them, in all services";
    can.rate = Ability::no(no_limit);
    can.exact_rate = Ability::no(no_limit);
    can.latch = Ability::no(
        "the layout `redisson` has no latches: an `RCountDownLatch` is a number without a time, \
         and a count that is repeated after a lost reply counts twice; use a client without a \
         layout for them, in all services",
    );
    can.fenced_shares = Ability::no(
        "the layout `redisson` has no fencing tokens for locks held in shares: an `RFencedLock` is \
         exclusive; use an exclusive lock, or a client without a layout in all services",
    );
    can.read_write_lease = Some((
        Duration::from_secs(30),
        "a reader in Redisson sets all readers' ends to its own `lockWatchdogTimeout`, 30 s, at \
         each renewal; give a lease of at most 30 s with `renew(true)`, or the client such a one"
            .into(),
    ));
    can.token_window = false;
    can.hears = Hears::Messages;
    can
}

/// Why these servers can't keep such locks, if so.
pub(in crate::layouts) fn check(
    topology: &Topology,
    has_replicas: bool,
) -> Result<(), ConfigError> {
    let why = match topology {
        Topology::Quorum { .. } => {
            "is not for a quorum, which Redisson does not know; write `redis://`, \
             `redis-sentinel://` or `redis-cluster://`"
        }
        _ if has_replicas => {
            "has no `replicas`: holds of Redisson would not be confirmed by them; leave it out"
        }
        _ => return Ok(()),
    };
    Err(ConfigError::new(format!("the layout `redisson` {why}")))
}
