//! The numbers and switches of a client and of a request, their defaults and their limits.

use std::time::Duration;

use lock_store::Permits;
use lock_store::timing::{
    CALL_AHEAD, CALL_REMEMBERED, CALL_VALID, DEFAULT_COMMAND_TIMEOUT, MAX_LEASE, MIN_LEASE,
};

use crate::error::LockError;

/// How long one server may be silent until requests end, by default.
pub(crate) const DEFAULT_UNAVAILABLE_AFTER: Duration = Duration::from_secs(2);
/// What every key and channel of a client begins with.
pub(crate) const DEFAULT_NAMESPACE: &str = "lock";
/// The first lease of a handed-over lock. A grant that nobody picks up costs the others this much.
pub(crate) const FIRST_LEASE: Duration = Duration::from_secs(2);
/// A latch and its helper keys are forgotten after this, unless its user says otherwise.
pub(crate) const LATCH_TTL: Duration = MAX_LEASE;
/// A call is repeated for at most this long.
pub(crate) const CALL_REPEATED: Duration = Duration::from_secs(30);
const _: () = assert!(
    CALL_AHEAD.as_secs() + CALL_REPEATED.as_secs() + CALL_VALID.as_secs()
        <= CALL_REMEMBERED.as_secs(),
    "the last repeat may arrive when the call is forgotten"
);
/// At most this many fencing tokens are reserved for handoffs at once. More could let them run
/// ahead of the server's clock.
pub(crate) const TOKEN_WINDOW: u32 = 64;
/// How often the client's thread looks whether the tasks that wait are polled.
pub(crate) const PATROL_EVERY: Duration = Duration::from_millis(250);
/// A waiting task that has something to do, and has not done it at this many looks in a row, is
/// skipped. That is before the first lease of a lock that the store may have handed to it ends.
pub(crate) const LOOKS_UNTIL_SKIPPED: u32 = 5;
/// For each skipped request, this many behind it have to show that they are polled.
pub(crate) const CALLED_FOR_EACH: usize = 8;

/// Longer durations mean "no limit", and are cut to this, which can be added to an instant.
pub(crate) const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// What happens to the body of a locked function when its lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLost {
    /// The body's future is dropped at the moment the lock can no longer be trusted. The call
    /// returns [`LockError::Lost`], also for a body that blocked its thread past that moment and
    /// ended ([`LockError::body_ended`]). The default.
    #[default]
    Cancel,
    /// The body runs on and its result is returned. Ask [`Guard::is_held`](crate::Guard::is_held),
    /// or rely on the fencing token.
    Continue,
}

/// After which bodies a lock is kept for the rest of its
/// [`hold_at_least`](crate::Lock::hold_at_least).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HoldAfter {
    /// After each, also one that failed, panicked or was dropped: nobody else tries. The default.
    #[default]
    Always,
    /// After a body that returned, unless it returned the `Err` of a [`Result`]. After any other
    /// the lock is free at once, and somebody else may try. A guard of
    /// [`acquire`](crate::Lock::acquire) has no body: the lock is kept after its
    /// [`release`](crate::Guard::release), and free after its drop.
    Success,
}

/// How long a request may wait: queueing, network and retries together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// At most this long; zero is one try.
    For(Duration),
    /// As long as the lock is busy, but not for a dead store: after the client's default wait
    /// without an answer, the request ends.
    Forever,
}

/// The options of one request, as the attribute knows them at compile time. `None` means the
/// client's default.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The lease; given here, it is fixed unless `renew` says otherwise.
    pub lease: Option<Duration>,
    /// The lease if none is given, of a view of the client.
    pub default_lease: Option<Duration>,
    /// Whether the watchdog renews: by default if no lease is given.
    pub renew: Option<bool>,
    /// No hold outlives this.
    pub max_hold: Option<Duration>,
    /// The wait budget.
    pub wait: Option<Wait>,
    /// Strict arrival order over all processes.
    pub fair: bool,
    /// Whether a nested request of the same key shares the hold.
    pub reentrant: bool,
    /// What happens to the body when the lock is lost.
    pub on_lost: OnLost,
    /// The key stays taken for at least this long.
    pub hold_at_least: Option<Duration>,
    /// After which bodies.
    pub hold_after: HoldAfter,
    /// Whether the grant brings a fencing token.
    pub fenced: bool,
    /// How much of the key is taken.
    pub mode: Mode,
    /// It stands for a lock as a leader: a long wait, and a long hold, are no news.
    pub leads: bool,
}

/// How much of a key a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All of it.
    Exclusive,
    /// Together with other readers.
    Read,
    /// All of it, where there are readers.
    Write,
    /// This number of permits, and how many there are in all.
    Permits(Permits),
}

impl Spec {
    /// What a request has when nothing is said.
    pub const DEFAULT: Self = Self {
        lease: None,
        default_lease: None,
        renew: None,
        max_hold: None,
        wait: None,
        fair: false,
        reentrant: true,
        on_lost: OnLost::Cancel,
        hold_at_least: None,
        hold_after: HoldAfter::Always,
        fenced: false,
        mode: Mode::Exclusive,
        leads: false,
    };

    /// Fills in the client's defaults and checks what has limits.
    pub(crate) fn resolve(&self, defaults: &Defaults) -> Result<Resolved, LockError> {
        let mut lease = self.lease.or(self.default_lease).unwrap_or(defaults.lease);
        check_lease("lease", lease)?;
        let renew = self.renew.unwrap_or(self.lease.is_none());
        if let Some(max_hold) = self.max_hold {
            if !renew {
                return Err(LockError::config(
                    "`max_hold` limits renewals, but this hold is not renewed: leave `max_hold` \
                     out or set `renew` to true",
                ));
            }
            if self.lease.is_some() && max_hold < lease {
                return Err(LockError::config(format!(
                    "`max_hold` ({max_hold:?}) is shorter than the lease ({lease:?}) that is given \
                     beside it: make the lease shorter or `max_hold` longer"
                )));
            }
            // A lease that nobody gave here is no promise: whoever changes the client's must not
            // break the functions that have a `max_hold`.
            lease = lease.min(max_hold);
            check_lease("max_hold", lease)?;
        }
        if let Some(keep) = self.hold_at_least
            && keep > MAX_LEASE
        {
            return Err(LockError::config(format!(
                "`hold_at_least` is {keep:?}; it must be 24 h at most"
            )));
        }
        let permits = match self.mode {
            Mode::Exclusive => None,
            Mode::Read => Some(Permits::READ),
            Mode::Write => Some(Permits::WRITE),
            Mode::Permits(permits) => Some(check_permits(permits)?),
        };
        Ok(Resolved {
            lease,
            renew,
            max_hold: self.max_hold.map(|max_hold| max_hold.min(FAR)),
            wait: match self.wait.unwrap_or(Wait::For(defaults.wait)) {
                Wait::For(wait) => Wait::For(wait.min(FAR)),
                Wait::Forever => Wait::Forever,
            },
            // Shares are always given in the order of arrival.
            fair: self.fair || permits.is_some(),
            permits,
            reentrant: self.reentrant,
            hold_at_least: self.hold_at_least.unwrap_or(Duration::ZERO),
            hold_after: self.hold_after,
            fenced: self.fenced,
            leads: self.leads,
            is_part: false,
        })
    }
}

/// Refuses a lease that could not be kept, or that would outlive a crash for too long.
pub(crate) fn check_lease(name: &str, lease: Duration) -> Result<(), LockError> {
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        Ok(())
    } else {
        Err(LockError::config(format!(
            "`{name}` is {lease:?}; it must be from 10 ms to 24 h"
        )))
    }
}

/// Refuses numbers of permits that could never be had.
pub(crate) fn check_permits(permits: Permits) -> Result<Permits, LockError> {
    let Permits { count, of } = permits;
    if of == 0 || of >= Permits::READ_WRITE {
        return Err(LockError::config(format!(
            "a semaphore has {of} permits; it must have from 1 to {}",
            Permits::READ_WRITE - 1
        )));
    }
    if (1..=of).contains(&count) {
        Ok(permits)
    } else {
        Err(LockError::config(format!(
            "{count} permits are asked for of a semaphore that has {of}; ask for at least 1 and \
             at most {of}"
        )))
    }
}

/// A request's options with nothing left open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolved {
    pub(crate) lease: Duration,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) wait: Wait,
    pub(crate) fair: bool,
    pub(crate) permits: Option<Permits>,
    pub(crate) reentrant: bool,
    pub(crate) hold_at_least: Duration,
    pub(crate) hold_after: HoldAfter,
    pub(crate) fenced: bool,
    pub(crate) leads: bool,
    /// Its hold becomes a part of another. Nobody is told how it ends.
    pub(crate) is_part: bool,
}

impl Resolved {
    /// How long the key stays taken whatever becomes of the body.
    pub(crate) fn kept_always(&self) -> Duration {
        match self.hold_after {
            HoldAfter::Always => self.hold_at_least,
            HoldAfter::Success => Duration::ZERO,
        }
    }

    /// The same after a success only.
    pub(crate) fn kept_after_success(&self) -> Duration {
        self.hold_at_least - self.kept_always()
    }
}

/// The defaults of a client's requests, and its time limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    /// The watchdog renews it at a third.
    pub(crate) lease: Duration,
    pub(crate) wait: Duration,
    pub(crate) command_timeout: Duration,
    /// A request that waits for longer says so once.
    pub(crate) warn_after: Duration,
    /// A hold that is renewed for longer says so once.
    pub(crate) warn_held_after: Duration,
    /// How long a store may be silent until requests end. `None`: as long as they may wait.
    pub(crate) unavailable_after: Option<Duration>,
    /// How often, and for how long, a hold is handed off inside the process before other processes
    /// have their turn.
    pub(crate) local_handoffs: u32,
    pub(crate) local_tenure: Duration,
    /// Whether other clients may end its holds.
    pub(crate) revocable: bool,
    /// Whether the store's messages are believed. If not, each is a reason to ask.
    pub(crate) trusts_messages: bool,
}

impl Defaults {
    /// The defaults of a client without settings.
    pub(crate) const STANDARD: Self = Self {
        lease: Duration::from_secs(30),
        wait: Duration::from_secs(10),
        command_timeout: DEFAULT_COMMAND_TIMEOUT,
        warn_after: Duration::from_secs(30),
        warn_held_after: Duration::from_secs(300),
        unavailable_after: None,
        local_handoffs: 64,
        local_tenure: Duration::from_millis(10),
        revocable: true,
        trusts_messages: true,
    };
}

impl Default for Defaults {
    fn default() -> Self {
        Self::STANDARD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults = Defaults::STANDARD;

    #[test]
    fn a_given_lease_is_fixed_and_the_default_lease_is_renewed() {
        let lease = Some(Duration::from_secs(1));
        for (lease, renew, renews) in [
            (None, None, true),
            (lease, None, false),
            (lease, Some(true), true),
        ] {
            let mut spec = Spec::DEFAULT;
            (spec.lease, spec.renew) = (lease, renew);
            assert_eq!(spec.resolve(&DEFAULTS).unwrap().renew, renews, "{spec:?}");
        }
    }

    #[test]
    fn max_hold_shortens_a_lease_that_is_not_given_beside_it() {
        let cap = Duration::from_secs(10);
        let capped = |default_lease| {
            let spec = Spec {
                default_lease,
                max_hold: Some(cap),
                ..Spec::DEFAULT
            };
            spec.resolve(&DEFAULTS).unwrap()
        };
        // The client's lease, and that of a view.
        for default_lease in [None, Some(MAX_LEASE), Some(cap * 2)] {
            let resolved = capped(default_lease);
            assert_eq!((resolved.lease, resolved.max_hold), (cap, Some(cap)));
            assert!(resolved.renew);
        }
        assert_eq!(capped(Some(cap / 2)).lease, cap / 2);
    }

    #[test]
    fn contradictions_and_limits_are_told() {
        type Wrong = fn(&mut Spec);
        let bad: [Wrong; 6] = [
            |spec| spec.lease = Some(Duration::ZERO),
            |spec| spec.lease = Some(MAX_LEASE + MIN_LEASE),
            |spec| (spec.renew, spec.max_hold) = (Some(false), Some(MAX_LEASE)),
            |spec| {
                let (lease, shorter) = (Duration::from_secs(30), Duration::from_secs(29));
                (spec.lease, spec.renew, spec.max_hold) = (Some(lease), Some(true), Some(shorter));
            },
            |spec| spec.max_hold = Some(MIN_LEASE / 2),
            |spec| spec.hold_at_least = Some(MAX_LEASE + MIN_LEASE),
        ];
        for wrong in bad {
            let mut spec = Spec::DEFAULT;
            wrong(&mut spec);
            assert!(
                matches!(spec.resolve(&DEFAULTS), Err(LockError::Config { .. })),
                "{spec:?}"
            );
        }
    }
}
