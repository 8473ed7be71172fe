//! [`Store`]: the operations of a store. All but one are safe to repeat.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::capabilities::Capabilities;
use crate::client_message::ClientMessage;
use crate::error::{StoreError, StoreErrorKind};
use crate::health::ServerHealth;
use crate::instant::Instant;
use crate::key::LockKey;
use crate::latch::{LatchCall, LatchCounted, LatchFound, LatchSet};
use crate::link::{Answer, Failure, Link, Replied};
use crate::namespace::Namespace;
use crate::owner::{ClientId, FoundHolder, Holder, Owner};
use crate::rate::{RateRequest, Rated};
use crate::request::{
    Acquire, Acquired, AcquiredAll, Claim, Fenced, LockFound, Release, Released, Renewal, Renewed,
};

/// The result of an operation. It may be dropped at any time, which leaves the outcome unknown.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Replied<T>> + Send + 's>>;

/// The result of a question that concerns no key.
pub type Asked<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Whether the findings of all servers were logged.
pub type Logged<'s> = Pin<Box<dyn Future<Output = bool> + Send + 's>>;

/// The end of what the engine does by itself.
pub type Finished<'s> = Pin<Box<dyn Future<Output = ()> + Send + 's>>;

/// The contract. Each operation gets the time by which it must answer, on the client's clock.
///
/// An engine that lacks something leaves out its operations, which then refuse, and says so in its
/// [`capabilities`](Self::capabilities), so that nobody asks.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Takes the key for the owner, if it is free or already the owner's.
    ///
    /// If the owner repeats it, it grants again: the hold lasts at least the lease from now, and a
    /// fenced grant has a new, higher token.
    ///
    /// An engine that [tells slow servers from silent ones](Capabilities::tells_slow) gets a later
    /// `by`: when the request gives up.
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired>;

    /// Prolongs each owner's hold to at least its lease from now, in one round trip. Never makes a
    /// key, and never shortens a lease. The replies are in the order of the holds.
    ///
    /// What is known of one is told although another was refused or not answered
    /// ([`Unanswered`](Renewed::Unanswered)), above all that it is gone. A failure says nothing of
    /// any: so it is when one transaction for all of them is refused.
    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>>;

    /// Takes several free keys at once, for exclusive holds, or none of them. Never joins a queue.
    ///
    /// Takes one round trip if the store can do it at once. Safe to repeat, like
    /// [`acquire`](Self::acquire).
    ///
    /// Without this, the engine takes them one after the other.
    fn acquire_all(&self, _requests: Vec<Acquire>, _by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let link = self.link();
        Box::pin(async move { Ok(Answer::new(AcquiredAll::Apart, link)) })
    }

    /// Gives an existing hold a new fencing token.
    fn fence(&self, _claim: Claim, _by: Instant) -> StoreFuture<'_, Fenced> {
        refused("fencing tokens")
    }

    /// Ends each hold and hands its key to the next in the queue, in one round trip. The replies
    /// are in the order of the requests.
    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>>;

    /// Gives back all but `permits` of a shared hold, at least one, and hands them over. Also
    /// replies `Released` if the hold had no more before.
    fn shrink(&self, _claim: Claim, _permits: u32, _by: Instant) -> StoreFuture<'_, Released> {
        refused("locks held in shares")
    }

    /// Takes the owner out of the queue. If the owner was granted the key meanwhile, ends that
    /// hold.
    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released>;

    /// The key's holder, the rest of its lease, and the number of places in the queue. `None` if
    /// the key holds something that is not a lock.
    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>>;

    /// All holders, up to a thousand. `None` if the key holds something that is not a lock. Without
    /// this, the engine is asked for the one that `inspect` gives.
    fn holders(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Vec<FoundHolder>>> {
        let found = self.inspect(key, by);
        Box::pin(async move {
            let Answer { value, link, .. } = found.await?;
            let holders = value.map(|found| found.holder.into_iter().collect());
            Ok(Answer::new(holders, link))
        })
    }

    /// What the holder of a lock is called that is a client of another library, if the store has
    /// told of it lately and knows a name: for people.
    fn foreign_name(&self, _holder: Holder) -> Option<String> {
        None
    }

    /// What the key of a conflict holds, if it is a lock that this store keeps for others in
    /// another way: for people. The text follows "the key … holds".
    fn foreign_lock(&self, _key: LockKey, _by: Instant) -> Asked<'_, Option<&'static str>> {
        Box::pin(async { Ok(None) })
    }

    /// The owner by which the engine knows a hold of this client. `shown` is the owner that the
    /// store shows for it, and that a revocation names. They differ only in a quorum: there each
    /// attempt has an owner token of its own, so that a late end of one attempt can't end the hold
    /// that the next one got.
    fn owner_of(&self, shown: Owner) -> Owner {
        shown
    }

    /// Ends every hold of the key and hands the key to the next in the queue. True if there was a
    /// hold, `None` if the key holds something that is not a lock.
    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>>;

    /// Takes tokens from a rate limiter's bucket, if the request's wait is enough for them. The one
    /// operation that is not safe to repeat: a repeat takes tokens again. Then fewer requests pass
    /// than could, never more.
    fn rate(&self, _request: RateRequest, _by: Instant) -> StoreFuture<'_, Rated> {
        refused("rate limiters")
    }

    /// Sets a latch for the time `ttl`, unless it is set and has not opened. `ttl` counts whether
    /// the latch opens or not. `count` is not zero. A repeat by the same owner changes nothing, and
    /// gets the first reply again. When the store may have forgotten that reply, attempts are no
    /// longer [valid](LatchCall::valid), and change nothing.
    fn latch_set(
        &self,
        _call: LatchCall,
        _count: u32,
        _ttl: Duration,
        _by: Instant,
    ) -> StoreFuture<'_, LatchSet> {
        refused(LATCHES)
    }

    /// Counts a latch down by one. Repeats work as for [`latch_set`](Self::latch_set). The last
    /// count tells all waiters: [`Listener::on_granted`](crate::Listener::on_granted), with the
    /// generation that opened.
    fn latch_count_down(&self, _call: LatchCall, _by: Instant) -> StoreFuture<'_, LatchCounted> {
        refused(LATCHES)
    }

    /// The state of a latch.
    fn latch_look(&self, _key: LockKey, _by: Instant) -> StoreFuture<'_, LatchFound> {
        refused(LATCHES)
    }

    /// The state of a latch. Unless it is open, the owner gets a place among those that are told
    /// when it opens. A place is forgotten after a minute; a repeat keeps it.
    fn latch_wait(&self, _place: LatchCall, _by: Instant) -> StoreFuture<'_, LatchFound> {
        refused(LATCHES)
    }

    /// Gives up a place among the waiters.
    fn latch_leave(&self, _place: LatchCall, _by: Instant) -> StoreFuture<'_, ()> {
        refused(LATCHES)
    }

    /// What the store can do. The engine asks once, before anything else.
    fn capabilities(&self) -> Capabilities;

    /// Sends a message to another client of the store
    /// ([`Listener::on_message`](crate::Listener::on_message)). True if that client listens, as far
    /// as is known. A store that sends none replies false.
    fn tell(&self, _to: ClientId, _message: ClientMessage, _by: Instant) -> Asked<'_, bool> {
        Box::pin(async { Ok(false) })
    }

    /// Gives up what it keeps for a view's namespace, such as a subscription, if that was not used
    /// since the last call and `has_any` says that the client has no hold or request there. True if
    /// something is left and it wants to be asked again.
    fn forget_unused_views(&self, _has_any: &dyn Fn(&Namespace) -> bool) -> bool {
        false
    }

    /// Checks that the store answers.
    fn ping(&self, by: Instant) -> StoreFuture<'_, ()>;

    /// Waits until the first attempt to connect has succeeded or failed.
    fn await_connection(&self, _by: Instant) -> Asked<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Prepares the server for locks, if this store needs that once: tables and functions. Safe to
    /// repeat. The user must be allowed to make them. Does nothing where nothing is needed, so that
    /// a service can change its URL and not its code.
    fn migrate(&self, _by: Instant) -> Asked<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// True if there is a connection now: to a server that has locks, or to as many as are needed.
    /// Asks no server. A store that connects when it is asked for something should open a
    /// connection in the background if there is none.
    fn is_connected(&self) -> bool {
        true
    }

    /// Logs what endangers locks, for servers whose findings were not logged yet. True when those
    /// of all servers were; then it is not asked again.
    fn log_findings(&self, by: Instant) -> Logged<'_> {
        Box::pin(async move {
            let servers = self.servers(by).await;
            servers.iter().flatten().for_each(ServerHealth::log);
            servers.is_ok()
        })
    }

    /// What each of the store's servers reports about itself. This question is separate from the
    /// other operations, and tells nothing about the links.
    fn servers(&self, _by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The link that the client's own thread would use for an operation now, or a later link. If it
    /// depends on the key, a link that nothing ever uses.
    fn link(&self) -> Link;

    /// The link that an acquire of this key would use now, or a later link. An acquire that joins
    /// the queue hears of its grant over its own link.
    fn link_of(&self, _key: &LockKey) -> Link {
        self.link()
    }

    /// Waits until all that the engine does by itself for this client has ended, as the end of a
    /// hold on a server that was not waited for. Until `by`, which the engine keeps. The client
    /// asks nothing more then, and [closes](Self::close) it.
    fn finish(&self, _by: Instant) -> Finished<'_> {
        Box::pin(std::future::ready(()))
    }

    /// Closes the connections. Grants without a waiter are not reported any more.
    fn close(&self);

    /// True if it was closed and can't answer any more.
    fn is_closed(&self) -> bool;
}

const LATCHES: &str = "latches";

/// The reply of an engine that lacks this.
fn refused<'s, T: Send + 's>(what: &str) -> StoreFuture<'s, T> {
    let text = format!("this engine has no {what}");
    let error = StoreError::new(StoreErrorKind::Refused, text);
    Box::pin(std::future::ready(Err(Failure::without_effect(error))))
}

/// Logs why this lock, and so many others of the same call, were not renewed: [`Renewed`] has no
/// room for an error.
pub fn warn_of_renewal(key: &LockKey, others: usize, error: &StoreError) {
    tracing::warn!(
        key = %key.shortened(), others, %error,
        "a lock could not be renewed together with others"
    );
}
