//! [`Capabilities`]: what a store can do, and how far it can be relied on.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::timing::{MAX_LEASE, MIN_LEASE};

/// What a store can do. This never changes while the store is open: the engine asks once.
///
/// A store of its own begins with [`all`](Self::all) or [`none`](Self::none) and changes what
/// differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Locks that are held in shares: read-write locks and semaphores.
    pub shares: Ability,
    /// Strict arrival order over all processes.
    pub fair: Ability,
    /// Fencing tokens, with grants and [for existing holds](crate::Store::fence).
    pub fencing: Ability,
    /// Fencing tokens of locks that are held in shares.
    pub fenced_shares: Ability,
    /// Rate limiters.
    pub rate: Ability,
    /// Rate limiters with an exact limit ([`RateRequest::window`](crate::RateRequest)).
    pub exact_rate: Ability,
    /// Latches.
    pub latch: Ability,
    /// Keys that stay taken for a while after their release.
    pub kept: Ability,
    /// Keys of different [namespaces](crate::LockKey::namespace). Without it, clients can use only
    /// the namespace that the store was opened with. All keys of a
    /// [`release`](crate::Store::release) or an [`acquire_all`](crate::Store::acquire_all) are of
    /// one namespace; those of a [`renew`](crate::Store::renew) need not be.
    pub namespaces: bool,
    /// Whether a grant can reserve more than one fencing token. With one, each hand-over of a
    /// fenced lock goes through the store.
    pub token_window: bool,
    /// The leases that it can keep, and the advice for the error of one that it can't. A hand-over
    /// begins with 2 s, and a renewal at the end of `max_hold` asks for less.
    pub leases: LeaseLimits,
    /// The longest lease of a read-write lock, and the advice for the error of a longer one, if it
    /// is less than that of other locks.
    pub read_write_lease: Option<(Duration, Cow<'static, str>)>,
    /// How many keys an [`acquire_all`](crate::Store::acquire_all) has at most. `None`: there is no
    /// limit.
    pub most_keys: Option<usize>,
    /// How much longer than asked for a lease may last in the store, which may count in whole
    /// seconds. Nobody trusts it for longer; others wait for longer.
    pub rounds_up: Duration,
    /// How long the lock of a process that has died stays taken. For people.
    pub lingers: Lingers,
    /// How those who wait learn of a release. For people.
    pub hears: Hears,
    /// Whether it passes messages from client to client on ([`tell`](crate::Store::tell)). Without
    /// it, errors do not name the holder.
    pub tells: bool,
    /// How long after it was given to the store an acquire may be carried out, whatever has become
    /// of its connection. `None`: for the lease that it asks for. What a
    /// [failure](crate::Failure::until) says goes before this.
    pub carried_out_within: Option<Duration>,
    /// Whether it tells a server that is slow from one that is silent. Then an
    /// [acquire](crate::Store::acquire) has the time of its request, and the engine itself fails
    /// one that a silent server does not answer within [`Timeouts::command`].
    ///
    /// [`Timeouts::command`]: crate::timing::Timeouts::command
    pub tells_slow: bool,
    /// Whether another server takes over when one fails. Then it pays to wait longer for an answer.
    pub fails_over: bool,
}

/// Whether a store can do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ability {
    /// It can.
    Yes,
    /// It never can. The text is the user's error: why, and what to use instead.
    No(Cow<'static, str>),
}

/// The leases that a store can keep.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseLimits {
    /// From the shortest to the longest.
    pub range: RangeInclusive<Duration>,
    /// Ends the error of a lease outside of it: why, and what to do.
    pub advice: Cow<'static, str>,
}

/// How long the lock of a process that has died stays taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lingers {
    /// Until its lease ends.
    Lease,
    /// The store notices the death. At most this long, or until the lease ends if that is sooner.
    AtMost(Duration),
}

/// How those who wait learn of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// By a message ([`Listener::on_granted`](crate::Listener::on_granted)).
    Messages,
    /// They don't. They ask again when [`Busy`](crate::Busy::look_in) says so.
    Nothing,
}

/// Something that not every store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wish {
    /// A lock held in shares: a read-write lock or a semaphore.
    Shares,
    /// Strict arrival order over all processes.
    Fair,
    /// A fencing token.
    Fencing,
    /// A fencing token of a lock held in shares.
    FencedShares,
    /// A rate limiter.
    Rate,
    /// A rate limiter with an exact limit.
    ExactRate,
    /// A latch.
    Latch,
    /// This number of keys at once.
    Keys(usize),
    /// A hold of this length.
    Lease(Duration),
    /// A hold of a read-write lock of this length.
    ReadWriteLease(Duration),
    /// A key that stays taken for this long, even after its release.
    Kept(Duration),
}

impl Capabilities {
    /// All that the contract knows: what the embedded store can do.
    #[must_use]
    pub fn all() -> Self {
        Self {
            shares: Ability::Yes,
            fair: Ability::Yes,
            fencing: Ability::Yes,
            fenced_shares: Ability::Yes,
            rate: Ability::Yes,
            exact_rate: Ability::Yes,
            latch: Ability::Yes,
            kept: Ability::Yes,
            namespaces: true,
            token_window: true,
            leases: LeaseLimits::new(MIN_LEASE..=MAX_LEASE, "give another time"),
            read_write_lease: None,
            most_keys: None,
            rounds_up: Duration::ZERO,
            lingers: Lingers::Lease,
            hears: Hears::Messages,
            tells: true,
            carried_out_within: None,
            tells_slow: false,
            fails_over: false,
        }
    }

    /// Exclusive locks with a lease, asked for again and again, and nothing else. `engine` names
    /// the store in the errors of the rest.
    #[must_use]
    pub fn none(engine: &str) -> Self {
        let lacks = |what: &str| {
            Ability::No(Cow::Owned(format!(
                "{what} on {engine}; use exclusive locks there, or another engine"
            )))
        };
        Self {
            shares: lacks("read-write locks and semaphores are not available"),
            fair: lacks("`fair` is not available"),
            fenced_shares: lacks("fencing tokens are not available"),
            fencing: lacks("fencing tokens are not available"),
            rate: lacks("rate limiters are not available"),
            exact_rate: lacks("rate limiters with an exact limit are not available"),
            latch: lacks("latches are not available"),
            namespaces: false,
            token_window: false,
            hears: Hears::Nothing,
            tells: false,
            ..Self::all()
        }
    }

    /// The text of the error of what the store can never do. `None` if it can.
    #[must_use]
    pub fn refusal(&self, wish: Wish) -> Option<String> {
        let (what, time) = match wish {
            Wish::Shares => return self.shares.refusal(),
            Wish::Fair => return self.fair.refusal(),
            Wish::Fencing => return self.fencing.refusal(),
            Wish::FencedShares => {
                return self
                    .fencing
                    .refusal()
                    .or_else(|| self.fenced_shares.refusal());
            }
            Wish::Rate => return self.rate.refusal(),
            Wish::ExactRate => return self.rate.refusal().or_else(|| self.exact_rate.refusal()),
            Wish::Latch => return self.latch.refusal(),
            Wish::Keys(keys) => {
                let most = self.most_keys.filter(|most| keys > *most)?;
                return Some(format!(
                    "{keys} keys are asked for at once, and this store takes {most} at most: lock \
                     fewer keys at once"
                ));
            }
            Wish::ReadWriteLease(lease) => {
                let (longest, advice) = self.read_write_lease.as_ref()?;
                return (lease > *longest).then(|| {
                    format!(
                        "a read-write lock is asked for {lease:?}, and this store keeps one for at \
                         most {longest:?}: {advice}"
                    )
                });
            }
            Wish::Lease(lease) => ("the lease", lease),
            Wish::Kept(Duration::ZERO) => return None,
            Wish::Kept(_) if self.kept != Ability::Yes => return self.kept.refusal(),
            Wish::Kept(keep) => ("`hold_at_least`", keep),
        };
        let (shortest, longest) = (self.leases.range.start(), self.leases.range.end());
        let limit = match time {
            _ if time > *longest => format!("at most {longest:?}"),
            // A key that stays taken may do so for less.
            _ if time < *shortest && matches!(wish, Wish::Lease(_)) => {
                format!("at least {shortest:?}")
            }
            _ => return None,
        };
        let advice = &self.leases.advice;
        Some(format!(
            "{what} is {time:?}, and this store keeps locks for {limit}: {advice}"
        ))
    }
}

impl LeaseLimits {
    /// Leases of this range. The advice ends the error of another one.
    pub fn new(range: RangeInclusive<Duration>, advice: impl Into<Cow<'static, str>>) -> Self {
        Self {
            range,
            advice: advice.into(),
        }
    }
}

impl Ability {
    /// It can't, for this reason.
    pub fn no(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::No(reason.into())
    }

    fn refusal(&self) -> Option<String> {
        match self {
            Self::Yes => None,
            Self::No(reason) => Some(reason.clone().into_owned()),
        }
    }
}
