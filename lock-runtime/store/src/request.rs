//! The requests and replies of the operations on locks.

use std::time::Duration;

use crate::instant::Instant;
use crate::key::LockKey;
use crate::owner::{FoundHolder, Holder, Owner};

/// One hold, or the wish for one: the key, the owner, and the part of the key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// The key to lock, without namespace.
    pub key: LockKey,
    /// The owner.
    pub owner: Owner,
    /// The part of the key; `None` is an exclusive lock.
    pub permits: Option<Permits>,
}

impl Claim {
    /// A claim on this part of the key; `None` is all of it, alone.
    #[must_use]
    pub fn new(key: LockKey, owner: Owner, permits: Option<Permits>) -> Self {
        Self {
            key,
            owner,
            permits,
        }
    }
}

/// A request for a hold.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Acquire {
    /// The key, the owner, and the part of the key.
    pub claim: Claim,
    /// The length of the hold.
    pub lease: Duration,
    /// The length of the hold if it is handed over, until the owner renews it.
    pub first_lease: Duration,
    /// How much longer the request waits when it joins the queue. After that, its place does not
    /// count. `None` means without end. All later commands of the request have the same value.
    pub wait: Option<Duration>,
    /// The number of consecutive fencing tokens to reserve with the grant, or 0. The grant returns
    /// the first. A [grant](Granted::reserved) may reserve fewer; a hand-over reserves all of them.
    pub tokens: u32,
    /// What to do if the key is taken.
    pub queue: Queue,
    /// Whether the request asks for strict arrival order over all processes. A store whose queue
    /// has that order for all requests need not look at it.
    pub fair: bool,
    /// The owner of an exclusive hold that this command ends, if it is still held. The key then
    /// goes to the first in the queue, or to this request if the queue is empty.
    pub instead_of: Option<Owner>,
}

impl Acquire {
    /// A request that neither joins the queue nor asks for a token. A hand-over has this lease too.
    #[must_use]
    pub fn new(claim: Claim, lease: Duration) -> Self {
        Self {
            claim,
            lease,
            first_lease: lease,
            wait: None,
            tokens: 0,
            queue: Queue::Respect,
            fair: false,
            instead_of: None,
        }
    }
}

/// What an acquire does besides trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The first try of an owner that can't hold or queue yet. It takes a free key even if others
    /// queue for it. Not for shares: they are always granted in order.
    Barge,
    /// Respects the queue's order, but does not join it.
    Respect,
    /// Joins the queue, or keeps its place.
    Join,
}

/// The reply to [`Store::acquire`](crate::Store::acquire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The owner holds the key.
    Granted(Granted),
    /// Another owner holds the key.
    Busy(Busy),
    /// The key, or one of its helper keys, holds something else.
    Conflict,
}

/// A hold that the owner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// The fencing token, if asked for.
    pub token: Option<u64>,
    /// How many consecutive tokens are reserved, `token` included. It may be less than asked for.
    pub reserved: u32,
    /// The capacity by the other holders' requests, if it differs from this request's.
    pub limit: Option<u32>,
    /// Until when the hold can be trusted, if that is sooner than by the lease, counted from the
    /// sending of the command.
    pub until: Option<Instant>,
}

/// Another owner's hold; or nobody's, if it is others' turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// The rest of the holder's lease. Of several holders: of the lease that ends first. `None` if
    /// the store can't tell, or the holder has no lease.
    pub remaining: Option<Duration>,
    /// True if the owner has a place in the queue.
    pub queued: bool,
    /// The holder. Of several holders: the one whose lease ends first. `None` if the store does not
    /// tell.
    pub holder: Option<Holder>,
    /// The capacity by the other holders' requests, if it differs from this request's.
    pub limit: Option<u32>,
    /// When to ask again: in 10 ms at the soonest, and in a second at the latest. For a store that
    /// does not tell of a release, or tells of a foreign holder's as well. `None`: when the
    /// holder's lease ends, and at least each second; more often if the holder is foreign.
    pub look_in: Option<Duration>,
}

impl Acquired {
    /// Granted, with this token if one was asked for, and no more reserved.
    #[must_use]
    pub const fn granted(token: Option<u64>) -> Self {
        Self::Granted(Granted::new(token, token.is_some() as u32))
    }

    /// Busy, without more details.
    #[must_use]
    pub const fn busy(remaining: Option<Duration>, queued: bool) -> Self {
        Self::Busy(Busy::new(remaining, queued))
    }
}

impl AcquiredAll {
    /// Granted, with these tokens if some were asked for.
    #[must_use]
    pub const fn granted(tokens: Vec<Option<u64>>) -> Self {
        let until = None;
        Self::Granted { tokens, until }
    }
}

impl Granted {
    /// A grant with the first of `reserved` tokens.
    #[must_use]
    pub const fn new(token: Option<u64>, reserved: u32) -> Self {
        Self {
            token,
            reserved,
            limit: None,
            until: None,
        }
    }
}

impl Busy {
    /// Without more details.
    #[must_use]
    pub const fn new(remaining: Option<Duration>, queued: bool) -> Self {
        Self {
            remaining,
            queued,
            holder: None,
            limit: None,
            look_in: None,
        }
    }
}

/// The reply to [`Store::acquire_all`](crate::Store::acquire_all).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquiredAll {
    /// The owners hold all keys.
    Granted {
        /// The fencing tokens, in the order of the requests, if asked for.
        tokens: Vec<Option<u64>>,
        /// Until when all of them can be trusted, if that is sooner than by the lease.
        until: Option<Instant>,
    },
    /// Another owner holds the key of this request, or waits for it and the request respects that.
    Busy(usize),
    /// The key of this request, or one of its helper keys, holds something else.
    Conflict(usize),
    /// The keys are in different parts of the store. Nothing was tried: they must be acquired one
    /// after the other.
    Apart,
}

/// One hold of a batch to renew.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Renewal {
    /// The hold.
    pub claim: Claim,
    /// The new lease, from now.
    pub lease: Duration,
}

impl Renewal {
    /// A hold, and its new lease.
    #[must_use]
    pub fn new(claim: Claim, lease: Duration) -> Self {
        Self { claim, lease }
    }
}

/// The outcome of one [`Renewal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Renewed {
    /// The hold lasts at least as long as requested.
    Renewed,
    /// The hold lasts, and can be trusted until then and no longer. That may be sooner than
    /// requested, and sooner than was said before.
    Until(Instant),
    /// The owner does not hold the key. A store that has parts of a hold on several servers does
    /// not give back what is left: others could have the key before the owner knows. The owner
    /// releases it then, as every hold that is lost.
    Gone,
    /// It is not known: the part of the store that has the key was silent or refused, and something
    /// is known of another hold of the same call. The client asks again until the deadline. Of a
    /// hold on several keys, what another key was told counts all the same.
    Unanswered,
}

/// The reply to [`Store::fence`](crate::Store::fence).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fenced {
    /// The token. It is higher than every earlier one.
    Token(u64),
    /// The owner does not hold the key.
    Gone,
    /// The counter, or the key, holds something else.
    Conflict,
}

/// The end of a hold.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Release {
    /// The hold.
    pub claim: Claim,
    /// How long the key stays taken after this, by no owner that could renew it. Zero frees it.
    /// This rest has the permits of the hold. It takes the place of an earlier rest of the same
    /// owner with as many permits, and stays beside its other rests.
    pub keep: Duration,
}

impl Release {
    /// The end of a hold, after which the key stays taken for `keep`.
    #[must_use]
    pub fn new(claim: Claim, keep: Duration) -> Self {
        Self { claim, keep }
    }
}

/// The reply to [`Store::release`](crate::Store::release) and
/// [`Store::abandon`](crate::Store::abandon).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Released {
    /// The hold was ended.
    Released,
    /// The owner did not hold the key.
    NotHeld,
}

impl Released {
    /// Of an owner that held the key, or did not.
    #[must_use]
    pub const fn of(held: bool) -> Self {
        if held { Self::Released } else { Self::NotHeld }
    }
}

/// The reply to [`Store::inspect`](crate::Store::inspect).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockFound {
    /// The holder. Of several holders: the one whose lease ends last.
    pub holder: Option<FoundHolder>,
    /// The number of holders.
    pub holders: usize,
    /// The rest of that holder's lease; `None` if it has no lease.
    pub remaining: Option<Duration>,
    /// The number of places in the store's queue.
    pub waiting: usize,
    /// The permits that all holders have, of those that there are by the last one's request. `None`
    /// if it is not held in shares.
    pub permits: Option<Permits>,
}

impl LockFound {
    /// A key that nobody holds, with this many places in the queue.
    #[must_use]
    pub fn free(waiting: usize) -> Self {
        Self {
            waiting,
            ..Self::default()
        }
    }

    /// A key that one holds: the holder, and the rest of the lease.
    #[must_use]
    pub fn held(holder: FoundHolder, remaining: Option<Duration>, waiting: usize) -> Self {
        Self {
            holder: Some(holder),
            holders: 1,
            remaining,
            waiting,
            permits: None,
        }
    }
}

/// A part of a key that several can hold at once: some of its permits.
///
/// In a read-write lock, a reader takes one permit and a writer takes all. Tokio builds its
/// `RwLock` on its semaphore in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permits {
    /// The number of permits to take; at least one, and at most `of`.
    pub count: u32,
    /// The capacity by this request. It is admitted if no more permits than that are in use then.
    pub of: u32,
}

impl Permits {
    /// The permits of a read-write lock.
    pub const READ_WRITE: u32 = i32::MAX.unsigned_abs();
    /// A reader.
    pub const READ: Self = Self {
        count: 1,
        of: Self::READ_WRITE,
    };
    /// A writer.
    pub const WRITE: Self = Self {
        count: Self::READ_WRITE,
        of: Self::READ_WRITE,
    };

    /// True for a read-write lock, false for a semaphore.
    pub fn is_read_write(self) -> bool {
        self.of == Self::READ_WRITE
    }
}
