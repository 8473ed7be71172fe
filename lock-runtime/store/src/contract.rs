//! [`Store`]: the verbs, each safe to repeat.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::client_message::ClientMessage;
use crate::error::StoreError;
use crate::health::ServerHealth;
use crate::instant::Instant;
use crate::key::LockKey;
use crate::latch::{LatchCall, LatchCounted, LatchFound, LatchSet};
use crate::link::{Answer, Failure, Link};
use crate::owner::ClientId;
use crate::rate::{RateRequest, Rated};
use crate::request::{
    Acquire, Acquired, AcquiredAll, Claim, Fenced, Inspection, Queue, Release, Released, Renewal,
    Renewed,
};

/// What a verb returns: a future that may be dropped at any time, which leaves its outcome unknown.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<Answer<T>, Failure>> + Send + 's>>;

/// What a question returns that concerns no key.
pub type Asked<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// The contract. Each verb gets the instant by which it must have answered, by the client's clock.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Takes the key for the owner if it is free, or already the owner's.
    ///
    /// A repeat by the owner grants again: the hold lasts at least the lease from now, and a fenced
    /// grant brings a fresh, higher token.
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired>;

    /// Lets each owner's hold last at least its lease from now, in one round trip. Never makes a
    /// key, never shortens one.
    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>>;

    /// Takes several free keys at once, for exclusive holds, or none of them. Never joins a queue.
    ///
    /// One round trip where the store can do it at once; as safe to repeat as
    /// [`acquire`](Self::acquire).
    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll>;

    /// A new fencing token for a hold that exists.
    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced>;

    /// Ends each hold and hands its key to the next in the queue, in one round trip. The replies
    /// are in the same order.
    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>>;

    /// Gives back all but `permits` of a shared hold, and hands them on. `Released` also if it had
    /// no more before.
    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released>;

    /// Takes the owner out of the queue and, if it was granted the key meanwhile, ends that hold.
    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released>;

    /// Who holds the key, for how long still, and how many places its queue has.
    /// `None` if the key holds something that is not a lock.
    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>>;

    /// Ends whatever hold there is and hands the key to the next in the queue. True if there was
    /// one, `None` if the key holds something that is not a lock.
    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>>;

    /// Takes tokens of a rate limiter's bucket if they can be had within the request's wait. The
    /// one verb that a repeat does not repeat harmlessly: it takes again, so fewer pass than could,
    /// and never more.
    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated>;

    /// Sets a latch, for `ttl`, open or not, unless it is set and has not opened yet. `count` is
    /// not zero. A repeat by the same owner changes nothing more, and gets the first one's reply.
    /// An attempt that arrives when that may be forgotten is not [valid](LatchCall::valid) any
    /// more, and changes nothing.
    fn latch_set(
        &self,
        call: LatchCall,
        count: u32,
        ttl: Duration,
        by: Instant,
    ) -> StoreFuture<'_, LatchSet>;

    /// Counts a latch down by one; a repeat as [`latch_set`](Self::latch_set). The last count tells
    /// everyone that waits: [`Listener::granted`](crate::Listener::granted) with the generation
    /// that opened.
    fn latch_count_down(&self, call: LatchCall, by: Instant) -> StoreFuture<'_, LatchCounted>;

    /// What a latch is.
    fn latch_look(&self, key: LockKey, by: Instant) -> StoreFuture<'_, LatchFound>;

    /// What a latch is. Unless it is open, the owner has a place among those that are told when it
    /// opens. A place is forgotten after a minute; a repeat keeps it.
    fn latch_wait(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, LatchFound>;

    /// Gives a place up.
    fn latch_leave(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, ()>;

    /// Why the store can't give this, to anybody at any time; `None` if it can.
    fn refuses(&self, _wish: Wish) -> Option<String> {
        None
    }

    /// Whether it keeps keys of different [namespaces](LockKey::namespace) apart. If not, only the
    /// client's own namespace can be used, which the store was opened with. All keys of a
    /// [`release`](Self::release) or an [`acquire_all`](Self::acquire_all) are of one namespace;
    /// those of a [`renew`](Self::renew) need not be.
    fn tells_namespaces_apart(&self) -> bool {
        false
    }

    /// Passes a message on to another client of the store
    /// ([`Listener::told`](crate::Listener::told)). Whether that client listens, as far as is
    /// known. A store that passes nothing on says that nobody does.
    fn tell(&self, _to: ClientId, _message: ClientMessage, _by: Instant) -> Asked<'_, bool> {
        Box::pin(async { Ok(false) })
    }

    /// Asks the store for a sign of life.
    fn ping(&self, by: Instant) -> StoreFuture<'_, ()>;

    /// Waits until the first attempt to connect has succeeded or failed.
    fn connected(&self, _by: Instant) -> Asked<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Logs what endangers locks, of the servers whose findings were not logged yet. True when
    /// those of all servers were.
    fn log_findings(&self, _by: Instant) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async { true })
    }

    /// What each of its servers says of itself. Asks beside the other verbs, and says nothing about
    /// the links.
    fn servers(&self, _by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The link over which the client's own thread would send a verb now, or a later one; one over
    /// which nothing ever goes, if that depends on the key.
    fn link(&self) -> Link;

    /// The link over which the caller would send an acquire of this key now, or a later one. Over
    /// the link of an acquire that joins the queue the client hears of what it is granted.
    fn link_of(&self, _key: &LockKey, _queue: Queue) -> Link {
        self.link()
    }

    /// Whether what it tells on its own of a grant is only a hint, so that the owner acquires again
    /// and believes that reply.
    fn only_hints(&self) -> bool {
        false
    }

    /// Whether another server takes over when one fails, so that it pays to wait longer for an
    /// answer.
    fn fails_over(&self) -> bool {
        false
    }

    /// Closes connections, and grants nobody waits for are no longer told.
    fn close(&self);

    /// Whether it was closed and can't answer any more.
    fn is_closed(&self) -> bool;
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
