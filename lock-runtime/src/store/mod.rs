//! The contract between the engine and what keeps the locks: few verbs, all safe to repeat.
//!
//! Every request carries the owner token that it is about, and every reply says what is so, never only "failed".
//! A store knows no queue of tasks, no [`Guard`](crate::Guard) and no configuration but its own; the engine knows no
//! Redis. This module is public for this project's own tests and is not covered by semantic versioning.

pub mod latch;
pub mod memory;
pub mod quorum;
mod rate;
pub mod redis;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::Waker;
use std::time::{Duration, Instant};

pub use self::latch::{LatchRequest, LatchState, LatchVerb, Latched};
pub use self::rate::{RateRequest, Rated};
use crate::error::StoreError;
use crate::health::ServerHealth;
use crate::key::LockKey;
pub use crate::share::Share;

/// What a verb returns: a future that may be dropped at any time, which leaves its outcome unknown.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<Answer<T>, Failure>> + Send + 's>>;

/// The contract. Each verb gets the instant by which it must have answered, by the client's clock.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Takes the key for the owner if it is free, or already the owner's.
    ///
    /// A repeat by the owner grants again: the hold lasts at least the lease from now, and a fenced grant brings a fresh,
    /// higher token.
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired>;

    /// Lets each owner's hold last at least its lease from now, in one round trip. Never makes a key, never shortens one.
    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>>;

    /// Takes several free keys at once, for exclusive holds, or none of them. Never joins a queue.
    ///
    /// One round trip where the store can do it at once; as safe to repeat as [`acquire`](Self::acquire).
    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll>;

    /// A new fencing token for a hold that exists.
    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced>;

    /// Ends each hold and hands its key to the next in the queue, in one round trip. The replies are in the same order.
    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>>;

    /// Gives back all but `permits` of a shared hold, and hands them on. `Released` also if it had no more before.
    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released>;

    /// Changes how many permits a key has that is held in shares; does nothing to one that nobody holds.
    /// False if the key is held as something else.
    fn resize(&self, key: LockKey, of: u32, by: Instant) -> StoreFuture<'_, bool>;

    /// Takes the owner out of the queue and, if it was granted the key meanwhile, ends that hold.
    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released>;

    /// Who holds the key, for how long still, and how many places its queue has.
    /// `None` if the key holds something that is not a lock.
    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>>;

    /// Ends whatever hold there is and hands the key to the next in the queue. True if there was one, `None` if the
    /// key holds something that is not a lock.
    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>>;

    /// Takes tokens of a rate limiter's bucket if they can be had within the request's wait. The one verb that a repeat
    /// does not repeat harmlessly: it takes again, so fewer pass than could, and never more.
    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated>;

    /// Does one thing with a count-down latch. A repeat by the same owner changes nothing more, and gets the first
    /// one's reply.
    fn latch(&self, request: LatchRequest, by: Instant) -> StoreFuture<'_, Latched>;

    /// Why the store can't give this, to anybody at any time; `None` if it can.
    fn refuses(&self, _wish: Wish) -> Option<String> {
        None
    }

    /// Asks the store for a sign of life.
    fn ping(&self, by: Instant) -> StoreFuture<'_, ()>;

    /// What each of its servers says of itself. Asks beside the other verbs, and says nothing about the links.
    fn servers(
        &self,
        _by: Instant,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<ServerHealth>, StoreError>> + Send + '_>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The link over which the client's own thread would send a verb now, or a later one; one over which nothing ever
    /// goes, if that depends on the key.
    fn link(&self) -> Link;

    /// The link over which the caller would send an acquire of this key now, or a later one. Over the link of an acquire
    /// that joins the queue the client hears of what it is granted.
    fn link_of(&self, _key: &LockKey, _queue: Queue) -> Link {
        self.link()
    }

    /// Whether what it tells on its own of a grant is only a hint, so that the owner acquires again and believes that
    /// reply.
    fn only_hints(&self) -> bool {
        false
    }

    /// Closes connections, and grants nobody waits for are no longer told.
    fn close(&self);

    /// Whether it was closed and can't answer any more.
    fn is_closed(&self) -> bool;
}

/// What a store tells its client on its own. Hints and grants; a lost one costs time, never safety.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// A hold was handed to this owner, for its [`Acquire::first_lease`]. Told in the order of the replies of this link:
    /// before the reply to any command that the store carried out after the hand-over. The owner's task is woken when
    /// the wake-up is dropped, which the store does outside of its locks.
    fn granted(&self, link: Link, owner: Owner, token: Option<u64>) -> WakeUp;
    /// Messages may have been lost: everyone who waits looks again.
    fn look_again(&self);
    /// The same for those who hear of their grants over this link: it is gone, and others are well.
    fn lost(&self, _link: Link) {
        self.look_again();
    }
    /// A hold of this key has ended, and was handed to nobody.
    fn freed(&self, _ended: Ended) {}
}

/// What a store tells of a hold that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What is free now.
    pub key: LockKey,
    /// Whose it was.
    pub owner: Owner,
    /// How many clients were told, the one that is told by this included.
    pub told: u32,
}

/// What a request could want that not every store can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A lock that is held in shares: readers and writers, a semaphore.
    Shares,
    /// Strict arrival order over all processes.
    Fair,
    /// A rate limiter.
    Rate,
    /// A latch.
    Latch,
    /// A hold for so long.
    Lease(Duration),
    /// A key that stays taken for so long, also after its release.
    Kept(Duration),
}

/// Wakes a task when it is dropped.
#[derive(Debug, Default)]
pub struct WakeUp(pub Option<Waker>);

impl Drop for WakeUp {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.wake();
        }
    }
}

/// Which connection an answer came over. Commands over one link are carried out in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

impl Link {
    /// The answers of one batch came over several links, none of which stands for all.
    pub const SEVERAL: Self = Self(u64::MAX);
}

/// A reply, and the link it came over.
#[derive(Clone, Copy, Debug)]
pub struct Answer<T> {
    /// What the store said.
    pub value: T,
    /// The link the command went over.
    pub link: Link,
}

impl<T> Answer<T> {
    /// Another value that came over the same link.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            value: change(self.value),
            link: self.link,
        }
    }
}

/// Why there is no reply, and whether the command may have been, or may yet be, carried out.
#[derive(Clone, Debug)]
pub struct Failure {
    /// For the user.
    pub error: StoreError,
    /// The link over which the command went, if it may take effect; `None` if it certainly did not and will not.
    pub unknown: Option<Link>,
}

/// An owner token: 128 random bits for the client, and a counter for each request of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The client.
    pub client: ClientId,
    /// The request.
    pub request: u64,
}

/// 128 random bits from the operating system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u128);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:x}", self.client.0, self.request)
    }
}

/// Owner tokens are secrets of a kind (whoever knows one can release): logs show a beginning.
impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}-{:x}", self.client, self.request)
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}…", self.0 >> 96)
    }
}

impl Owner {
    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (client, request) = text.split_once('-')?;
        if client.len() != 32 {
            return None;
        }
        let client = ClientId(u128::from_str_radix(client, 16).ok()?);
        Some(Self {
            client,
            request: u64::from_str_radix(request, 16).ok()?,
        })
    }
}

/// One hold, or one wished for: of what, for whom, and how much of it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What is locked, without namespace.
    pub key: LockKey,
    /// For whom.
    pub owner: Owner,
    /// How much of it; `None` is an exclusive lock.
    pub share: Option<Share>,
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
    /// How many consecutive fencing tokens are reserved with the grant, which brings the first of them; 0 for none.
    pub tokens: u32,
    /// What to do when the key is taken.
    pub queue: Queue,
    /// The owner of an exclusive hold that ends with this command, if it is held still: the key then goes to the first
    /// in the queue, and to this request if nobody waits.
    pub instead_of: Option<Owner>,
    /// The link to send it over, if that is still there and the command can go over it.
    pub via: Link,
}

/// What an acquire does besides trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The first try of an owner that can't hold or queue yet: takes a free key even if others queue for it.
    /// Not for shares, which are always given in order.
    Barge,
    /// Respects the queue's order, but does not join it.
    Respect,
    /// Joins the queue, or keeps its place.
    Join,
}

/// The reply to [`Store::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The owner holds the key.
    Granted {
        /// The fencing token, if asked for.
        token: Option<u64>,
    },
    /// Somebody else holds it.
    Busy {
        /// How long the holder can still have it, or the one of several whose lease ends first; `None` if the store
        /// can't say or the holder has no lease.
        remaining: Option<Duration>,
        /// Whether the owner stands in the queue.
        queued: bool,
    },
    /// The key, or a helper key, is something else.
    Conflict,
}

/// The reply to [`Store::acquire_all`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquiredAll {
    /// The owners hold all keys.
    Granted {
        /// The fencing tokens, in the order of the requests, if asked for.
        tokens: Vec<Option<u64>>,
    },
    /// Somebody else holds the key of this request, or waited for it and the request respects that.
    Busy(usize),
    /// The key of this request, or a helper key of it, is something else.
    Conflict(usize),
    /// The keys lie in different parts of the store, and nothing was tried: they can only be had one after the other.
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

/// The reply to [`Store::fence`].
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
    /// How long the key stays taken still, by nobody who could renew it; zero frees it.
    pub keep: Duration,
}

/// The reply to [`Store::release`] and [`Store::abandon`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Released {
    /// The hold was ended.
    Released,
    /// The owner did not hold the key.
    NotHeld,
}

/// The reply to [`Store::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The value in the key: an owner token, or what another client wrote. Of several, the one with the longest lease.
    pub holder: Option<String>,
    /// How many hold it.
    pub holders: usize,
    /// How long that holder can still have it; `None` if it has no lease.
    pub remaining: Option<Duration>,
    /// Places in the store's queue.
    pub waiting: usize,
}
