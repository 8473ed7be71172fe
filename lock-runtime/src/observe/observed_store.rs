//! [`ObservedStore`]: a store whose commands the observers hear of.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lock_store::{
    Acquire, Acquired, AcquiredAll, Answer, Asked, Capabilities, Claim, ClientId, ClientMessage,
    Clock, Failure, Fenced, Finished, Inspection, Instant, LatchCall, LatchCounted, LatchFound,
    LatchSet, Link, LockKey, Logged, Namespace, Owner, Queue, RateRequest, Rated, Release,
    Released, Renewal, Renewed, ServerHealth, Store, StoreFuture,
};

use super::event::{Verb, What};
use super::events::Events;

/// Passes everything on, and tells how long each command took.
#[derive(Debug)]
pub(crate) struct ObservedStore {
    store: Arc<dyn Store>,
    clock: Clock,
    events: Events,
    is_own_thread: fn() -> bool,
}

impl ObservedStore {
    /// `is_own_thread` says whether the caller is the client's own thread, on which no observer is
    /// called.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        events: Events,
        is_own_thread: fn() -> bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            events,
            is_own_thread,
        })
    }

    fn timed<'s, T: 's>(&'s self, verb: Verb, command: StoreFuture<'s, T>) -> StoreFuture<'s, T> {
        Box::pin(Timed {
            store: self,
            verb,
            sent: self.clock.now(),
            command,
        })
    }

    fn tell(&self, verb: Verb, took: Duration, failure: Option<&Failure>) {
        let error = failure.map(|failure| &failure.error);
        if !(self.is_own_thread)() {
            return self.events.tell(None, What::Command { verb, took, error });
        }
        let error = error.cloned();
        self.events.tell_later(None, move |tell| {
            let error = error.as_ref();
            tell.that(What::Command { verb, took, error });
        });
    }
}

/// A command, and when it was sent. By hand, since an `async` block would copy its result.
struct Timed<'s, T> {
    store: &'s ObservedStore,
    verb: Verb,
    sent: Instant,
    command: StoreFuture<'s, T>,
}

impl<T> Future for Timed<'_, T> {
    type Output = Result<Answer<T>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.command.as_mut().poll(cx));
        let took = self.store.clock.now().saturating_duration_since(self.sent);
        self.store.tell(self.verb, took, result.as_ref().err());
        Poll::Ready(result)
    }
}

impl Store for ObservedStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        self.timed(Verb::Acquire, self.store.acquire(request, by))
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        self.timed(Verb::Renew, self.store.renew(holds, by))
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        self.timed(Verb::AcquireAll, self.store.acquire_all(requests, by))
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        self.timed(Verb::Fence, self.store.fence(claim, by))
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        self.timed(Verb::Release, self.store.release(requests, by))
    }

    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        self.timed(Verb::Downgrade, self.store.shrink(claim, permits, by))
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        self.timed(Verb::Undo, self.store.abandon(request, by))
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        self.timed(Verb::Inspect, self.store.inspect(key, by))
    }

    fn holders(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Vec<String>>> {
        self.timed(Verb::Inspect, self.store.holders(key, by))
    }

    fn owner_of(&self, shown: Owner) -> Owner {
        self.store.owner_of(shown)
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        self.timed(Verb::ForceRelease, self.store.force_release(key, by))
    }

    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        self.timed(Verb::Rate, self.store.rate(request, by))
    }

    fn latch_set(
        &self,
        call: LatchCall,
        count: u32,
        ttl: Duration,
        by: Instant,
    ) -> StoreFuture<'_, LatchSet> {
        self.timed(Verb::Latch, self.store.latch_set(call, count, ttl, by))
    }

    fn latch_count_down(&self, call: LatchCall, by: Instant) -> StoreFuture<'_, LatchCounted> {
        self.timed(Verb::Latch, self.store.latch_count_down(call, by))
    }

    fn latch_look(&self, key: LockKey, by: Instant) -> StoreFuture<'_, LatchFound> {
        self.timed(Verb::Latch, self.store.latch_look(key, by))
    }

    fn latch_wait(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, LatchFound> {
        self.timed(Verb::Latch, self.store.latch_wait(place, by))
    }

    fn latch_leave(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, ()> {
        self.timed(Verb::Latch, self.store.latch_leave(place, by))
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        self.store.tell(to, message, by)
    }

    fn forget_unused_views(&self, has_any: &dyn Fn(&Namespace) -> bool) -> bool {
        self.store.forget_unused_views(has_any)
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        self.timed(Verb::Ping, self.store.ping(by))
    }

    fn connected(&self, by: Instant) -> Asked<'_, ()> {
        self.store.connected(by)
    }

    fn is_connected(&self) -> bool {
        self.store.is_connected()
    }

    fn log_findings(&self, by: Instant) -> Logged<'_> {
        self.store.log_findings(by)
    }

    fn migrate(&self, by: Instant) -> Asked<'_, ()> {
        self.store.migrate(by)
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        self.store.servers(by)
    }

    fn link(&self) -> Link {
        self.store.link()
    }

    fn link_of(&self, key: &LockKey, queue: Queue) -> Link {
        self.store.link_of(key, queue)
    }

    fn finish(&self, by: Instant) -> Finished<'_> {
        self.store.finish(by)
    }

    fn close(&self) {
        self.store.close();
    }

    fn is_closed(&self) -> bool {
        self.store.is_closed()
    }
}
