//! [`OrderedEngine`]: what an engine has of its own.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use super::client::OrderedClient;
use super::connecting::Connecting;
use super::fault::{LiveConnection, OperationFault};
use super::listing::Listing;
use super::names::KeyNode;
use super::own_requests::PlacedRequest;
use crate::capabilities::{Ability, Capabilities};
use crate::client_message::ClientMessage;
use crate::contract::{Asked, Finished};
use crate::error::StoreError;
use crate::instant::Instant;
use crate::key::LockKey;
use crate::owner::ClientId;
use crate::request::{
    Acquire, Acquired, AcquiredAll, Claim, Fenced, Release, Released, Renewal, Renewed,
};

/// The reply to an operation, or why there is none.
pub type Carried<T, E> = Result<T, OperationFault<<E as OrderedEngine>::Refusal>>;

/// A lock's requests, as an engine reads them.
pub type ListingOf<E> = Listing<<E as OrderedEngine>::Child, <E as OrderedEngine>::Read>;

/// The first of these fencing tokens, and how many are reserved. `None`: the hold is gone.
pub type Minted = Option<(u64, u32)>;

/// What the attempts of one operation have in common.
pub trait OperationProgress: Clone + Default + Send + Sync + 'static {
    /// The caller has gone. Nothing may be made any more: the undo has begun.
    fn give_up(&self);

    /// Whether something of the operation may be at the servers: what an answer has said to be
    /// there, or what was sent and not refused for sure. What an acquire has found there counts.
    fn may_have_made(&self) -> bool;
}

/// One attempt of an operation.
#[derive(Debug)]
pub struct Attempt<'a, E: OrderedEngine> {
    /// The connection that it is made over.
    pub live: &'a Arc<E::Live>,
    /// What it has in common with the others.
    pub progress: &'a E::Progress,
}

impl<'a, E: OrderedEngine> Attempt<'a, E> {
    pub(super) fn new(live: &'a Arc<E::Live>, progress: &'a E::Progress) -> Self {
        Self { live, progress }
    }
}

/// An engine whose servers keep the requests for a lock in their order. What it leaves out is the
/// same for all of them ([`OrderedStore`](super::OrderedStore)).
pub trait OrderedEngine:
    Deref<Target = OrderedClient<<Self as OrderedEngine>::Child, <Self as OrderedEngine>::Details>>
    + fmt::Debug
    + Send
    + Sync
    + Sized
    + 'static
{
    /// Whether all operations go on when nobody polls them, and not only those that make something.
    const ALL_GO_ON: bool;

    /// A connection that is up.
    type Live: LiveConnection + Send + Sync + 'static;
    /// How a server refuses.
    type Refusal: Send;
    /// A request, as everybody finds it at the servers.
    type Child: PlacedRequest + Send + Sync;
    /// What a client knows of its own request.
    type Details: Send;
    /// What is read with a lock's requests.
    type Read: Send + Sync;
    /// What the attempts of one operation have in common.
    type Progress: OperationProgress;

    /// The session's connections.
    fn connecting(&self) -> &Connecting<Self::Live>;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The name of a lock.
    fn node(&self, key: &LockKey) -> KeyNode;

    /// The user's error when a server refuses. `None`: its answer can't be read.
    fn refusal(why: Option<Self::Refusal>, server: &str) -> StoreError;

    /// Until when no server can have ended this request of the client. `None`: that is not known.
    fn trusted_until(&self, live: &Self::Live, child: &Self::Child) -> Option<Instant>;

    /// [`Store::acquire`](crate::Store::acquire).
    fn acquire(
        &self,
        on: &Attempt<'_, Self>,
        request: &Acquire,
    ) -> impl Future<Output = Carried<Acquired, Self>> + Send;

    /// [`Store::acquire_all`](crate::Store::acquire_all).
    fn acquire_all(
        &self,
        on: &Attempt<'_, Self>,
        requests: &[Acquire],
    ) -> impl Future<Output = Carried<AcquiredAll, Self>> + Send;

    /// [`Store::ping`](crate::Store::ping).
    fn ping(&self, live: &Arc<Self::Live>) -> impl Future<Output = Carried<(), Self>> + Send;

    /// Checks what the servers need to have for locks.
    fn check(&self, _live: &Arc<Self::Live>) -> impl Future<Output = Carried<(), Self>> + Send {
        std::future::ready(Ok(()))
    }

    /// [`Store::migrate`](crate::Store::migrate).
    fn migrate(self: &Arc<Self>, _by: Instant) -> Asked<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// [`Store::finish`](crate::Store::finish).
    fn finish(&self, by: Instant) -> Finished<'_> {
        Box::pin(self.burials.finish(by))
    }

    /// Ends the session, and the tasks. Nobody waits for it.
    fn close(&self);

    /// A lock's requests. It shows what this client did, and may miss what others did just now.
    fn list(
        &self,
        live: &Arc<Self::Live>,
        node: &KeyNode,
    ) -> impl Future<Output = Carried<ListingOf<Self>, Self>> + Send;

    /// A lock's requests, without those whose release was answered before this was asked.
    fn list_all_done(
        &self,
        live: &Arc<Self::Live>,
        node: &KeyNode,
    ) -> impl Future<Output = Carried<ListingOf<Self>, Self>> + Send {
        self.list(live, node)
    }

    /// Deletes a request. False if it was gone.
    fn delete_child(
        &self,
        live: &Arc<Self::Live>,
        node: &KeyNode,
        child: &Self::Child,
    ) -> impl Future<Output = Carried<bool, Self>> + Send;

    /// The session with this number is over. Forgets what hung on it.
    fn forget_session(&self, number: i64);
}

/// What becomes of holds.
pub trait EngineHolds: OrderedEngine {
    /// [`Store::renew`](crate::Store::renew). The reply must be there by `by`, with what is known
    /// then.
    fn renew(
        &self,
        on: &Attempt<'_, Self>,
        holds: &[Renewal],
        by: Instant,
    ) -> impl Future<Output = Carried<Vec<Renewed>, Self>> + Send;

    /// [`Store::fence`](crate::Store::fence).
    fn fence(
        &self,
        on: &Attempt<'_, Self>,
        claim: &Claim,
    ) -> impl Future<Output = Carried<Fenced, Self>> + Send;

    /// [`Store::release`](crate::Store::release).
    fn release(
        &self,
        on: &Attempt<'_, Self>,
        requests: &[Release],
    ) -> impl Future<Output = Carried<Vec<Released>, Self>> + Send;

    /// [`Store::shrink`](crate::Store::shrink).
    fn shrink(
        &self,
        on: &Attempt<'_, Self>,
        claim: &Claim,
        permits: u32,
    ) -> impl Future<Output = Carried<Released, Self>> + Send;

    /// [`Store::abandon`](crate::Store::abandon).
    fn abandon(
        &self,
        on: &Attempt<'_, Self>,
        request: &Acquire,
    ) -> impl Future<Output = Carried<Released, Self>> + Send;
}

/// Messages from client to client.
pub trait EngineMail: OrderedEngine {
    /// The name under which messages for this client are.
    fn mailbox(&self) -> String;

    /// Writes a letter, which the receiver deletes: what it is called. `None` if that client does
    /// not listen.
    fn tell(
        &self,
        live: &Arc<Self::Live>,
        to: ClientId,
        message: &ClientMessage,
    ) -> impl Future<Output = Carried<Option<String>, Self>> + Send;

    /// Deletes a letter if it is still there.
    fn take_back(
        &self,
        live: &Arc<Self::Live>,
        letter: &str,
    ) -> impl Future<Output = Carried<(), Self>> + Send;

    /// Says that the client listens, and reads what has come. Over each connection anew.
    fn listen(&self, live: &Arc<Self::Live>) -> impl Future<Output = Carried<(), Self>> + Send;

    /// Reads what has come, and watches for more.
    fn collect(&self, live: &Arc<Self::Live>) -> impl Future<Output = Carried<(), Self>> + Send;
}

/// What such an engine can do: all but what needs the servers' clock, which they do not show.
#[must_use]
pub fn capabilities(engine: &str) -> Capabilities {
    let mut can = Capabilities::all();
    let no_clock = format!(
        "rate limiters are not available on {engine}, whose servers show no clock; use another \
         engine for them"
    );
    can.rate = Ability::no(no_clock.clone());
    can.exact_rate = Ability::no(no_clock);
    can.latch = Ability::no(format!(
        "latches are not available on {engine}, whose servers show no clock to end them by; use \
         another engine for them"
    ));
    can.fails_over = true;
    can
}
