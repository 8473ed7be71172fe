//! The requests and replies of the verbs for locks.

use std::time::Duration;

use crate::key::LockKey;
use crate::link::Link;
use crate::owner::{Holder, Owner};
use crate::permits::Permits;

/// One hold, or the wish for one: the key, the owner, and how much of the key.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What is locked, without namespace.
    pub key: LockKey,
    /// For whom.
    pub owner: Owner,
    /// How much of it; `None` is an exclusive lock.
    pub permits: Option<Permits>,
}

/// A request for a hold.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// What, for whom, and how much.
    pub claim: Claim,
    /// For how long.
    pub lease: Duration,
    /// For how long when the hold is handed over, until the owner renews it.
    pub first_lease: Duration,
    /// How long the request still waits when it joins the queue. Then its place counts no more.
    /// `None`: without end. It is the same in all later commands of the request.
    pub wait: Option<Duration>,
    /// How many consecutive fencing tokens are reserved with the grant. The grant brings the first.
    /// 0: none.
    pub tokens: u32,
    /// What to do when the key is taken.
    pub queue: Queue,
    /// The owner of an exclusive hold that ends with this command, if it is still held. The key
    /// then goes to the first in the queue, or to this request if nobody waits.
    pub instead_of: Option<Owner>,
    /// The link to send it over, if it still exists and fits the command.
    pub via: Link,
}

/// What an acquire does besides trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The first try of an owner that can't hold or queue yet. It takes a free key even if others
    /// queue for it. Not for shares: they are always given in order.
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
    Granted {
        /// The fencing token, if asked for.
        token: Option<u64>,
        /// How many permits there are by the other holders' requests, if this request says another
        /// number.
        limit: Option<u32>,
    },
    /// Somebody else holds it.
    Busy {
        /// How long the holder can still have it. Of several: the one whose lease ends first.
        /// `None` if the store can't say, or the holder has no lease.
        remaining: Option<Duration>,
        /// Whether the owner stands in the queue.
        queued: bool,
        /// The holder. Of several: the one whose lease ends first. `None` if the store does not
        /// say.
        holder: Option<Holder>,
        /// As of a grant.
        limit: Option<u32>,
    },
    /// The key, or a helper key, is something else.
    Conflict,
}

impl Acquired {
    /// Granted, and nobody says another number of permits.
    pub const fn granted(token: Option<u64>) -> Self {
        Self::Granted { token, limit: None }
    }

    /// Busy, and no more is known.
    pub const fn busy(remaining: Option<Duration>, queued: bool) -> Self {
        Self::Busy {
            remaining,
            queued,
            holder: None,
            limit: None,
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
    },
    /// Another owner holds the key of this request, or waits for it and the request respects that.
    Busy(usize),
    /// The key of this request, or a helper key of it, is something else.
    Conflict(usize),
    /// The keys lie in different parts of the store. Nothing was tried: they can only be had one
    /// after the other.
    Apart,
}

/// One hold of a batch to renew.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The hold.
    pub claim: Claim,
    /// For how long from now.
    pub lease: Duration,
}

/// What became of one [`Renewal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Renewed {
    /// It lasts at least as long as asked.
    Renewed,
    /// The owner does not hold the key.
    Gone,
    /// The part of the store that has the key did not answer, and others did.
    Unanswered,
}

/// The reply to [`Store::fence`](crate::Store::fence).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fenced {
    /// The token; higher than every one before it.
    Token(u64),
    /// The owner does not hold the key.
    Gone,
    /// The counter, or the key, is something else.
    Conflict,
}

/// The end of a hold.
#[derive(Clone, Debug)]
pub struct Release {
    /// The hold.
    pub claim: Claim,
    /// How long the key stays taken after this, by no owner that could renew it. Zero frees it.
    pub keep: Duration,
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

/// The reply to [`Store::inspect`](crate::Store::inspect).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The value in the key: an owner token, or what another client wrote. Of several, the one with
    /// the longest lease.
    pub holder: Option<String>,
    /// How many hold it.
    pub holders: usize,
    /// How long that holder can still have it; `None` if it has no lease.
    pub remaining: Option<Duration>,
    /// Places in the store's queue.
    pub waiting: usize,
}
