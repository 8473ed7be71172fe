//! [`OrderedStore`]: the contract, by what an engine has of its own.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::carried::{carry_out, in_a_task, without_effect_unless_made};
use super::connecting::SessionNews;
use super::ends::{EngineEnds, end_in_time, keep_undoing};
use super::engine::{Attempt, Carried, EngineHolds, EngineMail, OperationProgress};
use super::servers::{EngineServers, servers};
use super::waiting::{EngineQueue, attend};
use crate::capabilities::Capabilities;
use crate::client_message::ClientMessage;
use crate::contract::{Asked, Finished, Store, StoreFuture};
use crate::health::ServerHealth;
use crate::instant::Instant;
use crate::key::LockKey;
use crate::link::{Link, Replied};
use crate::owner::{ClientId, FoundHolder};
use crate::request::{
    Acquire, Acquired, AcquiredAll, Claim, Fenced, LockFound, Release, Released, Renewal, Renewed,
};
use crate::rules::{MOST_HOLDERS, RankedRequest};

/// A letter that is not read by then is read by nobody.
const UNREAD_FOR: Duration = Duration::from_secs(10);

/// All that an engine has of its own.
pub trait WholeEngine: EngineHolds + EngineMail + EngineQueue + EngineEnds + EngineServers {}

impl<E: EngineHolds + EngineMail + EngineQueue + EngineEnds + EngineServers> WholeEngine for E {}

/// A client's handle. What it does goes on in the engine, which ends with this.
#[derive(Debug)]
pub struct OrderedStore<E: WholeEngine>(Arc<E>);

impl<E: WholeEngine> Drop for OrderedStore<E> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<E: WholeEngine> OrderedStore<E> {
    /// Its handle, with two tasks: one attends to the news of its session, and one ends what is
    /// over.
    pub fn begin(engine: Arc<E>, news: tokio::sync::mpsc::UnboundedReceiver<SessionNews>) -> Self {
        let clock = engine.clock.clone();
        clock.spawn(attend(Arc::clone(&engine), news));
        clock.spawn(end_in_time(Arc::clone(&engine)));
        Self(engine)
    }

    /// Carries an operation out: in a task of the client, if it is to go on when nobody polls it.
    fn operate<T, F>(
        &self,
        goes_on: bool,
        operation: impl FnOnce(Arc<E>, E::Progress) -> F,
    ) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Replied<T>> + Send + 'static,
    {
        let progress = E::Progress::default();
        let running = operation(Arc::clone(&self.0), progress.clone());
        match goes_on || E::ALL_GO_ON {
            true => in_a_task(self.0.connecting(), move || progress.give_up(), running),
            false => Box::pin(running),
        }
    }
}

/// Carries an operation of the engine out.
macro_rules! operate {
    ($store:ident, $by:ident, $method:ident($($argument:expr),+)) => {
        $store.operate(false, move |me, progress| async move {
            attempts!(me, progress, $by, $method($($argument),+))
        })
    };
}

/// Carries out what makes requests at the servers, and goes on when nobody polls it.
macro_rules! make {
    ($store:ident, $by:ident, $method:ident($($argument:expr),+)) => {
        $store.operate(true, move |me, progress| async move {
            let made = attempts!(me, progress, $by, $method($($argument),+));
            without_effect_unless_made(made, &progress)
        })
    };
}

macro_rules! attempts {
    ($me:ident, $progress:ident, $by:ident, $method:ident($($argument:expr),+)) => {{
        let operation = async |live| {
            let attempt = Attempt::new(&live, &$progress);
            $me.$method(&attempt, $($argument),+).await
        };
        carry_out(&*$me, $by, operation).await
    }};
}

/// Asks something that goes on only while somebody waits for the answer.
macro_rules! ask {
    ($store:ident, $by:ident, |$me:ident, $live:ident| $question:expr) => {
        Box::pin(async move {
            let $me = &*$store.0;
            carry_out($me, $by, async |$live| $question.await).await
        })
    };
}

impl<E: WholeEngine> Store for OrderedStore<E> {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        make!(self, by, acquire(&request))
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        operate!(self, by, renew(&holds, by))
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        make!(self, by, acquire_all(&requests))
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        operate!(self, by, fence(&claim))
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        operate!(self, by, release(&requests))
    }

    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        operate!(self, by, shrink(&claim, permits))
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        self.operate(false, move |me, progress| async move {
            let abandon = async |live| me.abandon(&Attempt::new(&live, &progress), &request).await;
            let abandoned = carry_out(&*me, by, abandon).await;
            if abandoned.is_err() {
                keep_undoing(&me, request);
            }
            abandoned
        })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        ask!(self, by, |me, live| inspect(me, &live, &key))
    }

    fn holders(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Vec<FoundHolder>>> {
        ask!(self, by, |me, live| holders(me, &live, &key))
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        ask!(self, by, |me, live| force_release(me, &live, &key))
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        Box::pin(async move {
            let (me, message) = (&*self.0, &message);
            let told = carry_out(me, by, async |live| me.tell(&live, to, message).await).await;
            let letter = told.map_err(|failure| failure.error)?.value;
            let is_told = letter.is_some();
            if let Some(letter) = letter {
                take_back_unread(&self.0, letter);
            }
            Ok(is_told)
        })
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        ask!(self, by, |me, live| me.ping(&live))
    }

    fn await_connection(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(async move {
            let me = &*self.0;
            let checked = carry_out(me, by, async |live| me.check(&live).await).await;
            checked.map(drop).map_err(|failure| failure.error)
        })
    }

    fn migrate(&self, by: Instant) -> Asked<'_, ()> {
        self.0.migrate(by)
    }

    fn is_connected(&self) -> bool {
        self.0.connecting().live_now().is_some()
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(servers(&*self.0, by))
    }

    fn link(&self) -> Link {
        self.0.connecting().link()
    }

    fn finish(&self, by: Instant) -> Finished<'_> {
        self.0.finish(by)
    }

    fn close(&self) {
        self.0.close();
    }

    fn is_closed(&self) -> bool {
        self.0.connecting().is_closed()
    }
}

/// Of a client that has died just before, in a while: else the letter would be there as long as
/// this client's session.
fn take_back_unread<E: WholeEngine>(me: &Arc<E>, letter: String) {
    let (clock, engine) = (me.clock.clone(), Arc::downgrade(me));
    me.clock.spawn(async move {
        clock.sleep_until(clock.now() + UNREAD_FOR).await;
        if let Some(me) = engine.upgrade() {
            let by = clock.now() + UNREAD_FOR;
            let take_back = async |live| me.take_back(&live, &letter).await;
            // If it fails, the letter ends with the session.
            let _ = carry_out(&*me, by, take_back).await;
        }
    });
}

async fn inspect<E: WholeEngine>(
    engine: &E,
    live: &Arc<E::Live>,
    key: &LockKey,
) -> Carried<Option<LockFound>, E> {
    let node = engine.node(key);
    let listing = engine.list_all_done(live, &node).await?;
    if listing.is_foreign {
        return Ok(None);
    }
    let mut found = listing.found();
    // The rest of a lease, which is known of what this client has.
    let last = listing.holding().last();
    let ends = last.and_then(|child| engine.own.lock().end_of(&node, child));
    found.remaining = ends.map(|ends| ends - engine.clock.now());
    Ok(Some(found))
}

async fn holders<E: WholeEngine>(
    engine: &E,
    live: &Arc<E::Live>,
    key: &LockKey,
) -> Carried<Option<Vec<FoundHolder>>, E> {
    let listing = engine.list_all_done(live, &engine.node(key)).await?;
    let holding = listing.holding().iter().take(MOST_HOLDERS);
    Ok((!listing.is_foreign).then(|| holding.map(RankedRequest::holder).collect()))
}

async fn force_release<E: WholeEngine>(
    engine: &E,
    live: &Arc<E::Live>,
    key: &LockKey,
) -> Carried<Option<bool>, E> {
    let node = engine.node(key);
    let listing = engine.list_all_done(live, &node).await?;
    if listing.is_foreign {
        return Ok(None);
    }
    let mut ended = false;
    for child in listing.holding() {
        ended |= engine.delete_child(live, &node, child).await?;
        let mut requests = engine.own.lock();
        requests.forget(&node, child);
        requests.unkeep(&node.child(child.name()));
    }
    Ok(Some(ended))
}
