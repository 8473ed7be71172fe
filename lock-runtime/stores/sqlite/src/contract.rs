//! The operations of the contract.

use std::time::Duration;

use lock_store::rules;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Asked, Capabilities, Claim, ClientId, ClientMessage, Fenced,
    FoundHolder, Instant, LatchCall, LatchCounted, LatchFound, LatchSet, Letter, Lingers, Link,
    LockFound, LockKey, RateRequest, Rated, Release, Released, Renewal, Renewed, Role,
    ServerHealth, Store, StoreFuture,
};

use crate::mail::News;
use crate::mailbox::LINK;
use crate::store::SqliteStore;
use crate::worker::LOOKS_EACH;
use crate::{latch, lock, rate};

impl Store for SqliteStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        let name = self.name(&request.claim.key);
        self.call(by, move |step| lock::acquire(step, &name, &request))
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        let named = |hold: Renewal| (self.name(&hold.claim.key), hold);
        let holds: Vec<_> = holds.into_iter().map(named).collect();
        self.call(by, move |step| {
            let renew = |(name, hold): &(String, Renewal)| {
                lock::with(step, name, |record| Ok(rules::renew(record, hold)))
            };
            holds.iter().map(renew).collect()
        })
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let named = |request: Acquire| (self.name(&request.claim.key), request);
        let requests: Vec<_> = requests.into_iter().map(named).collect();
        self.call(by, move |step| lock::acquire_all(step, &requests))
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        let name = self.name(&claim.key);
        self.call_lock(by, name, move |record| rules::fence(record, &claim))
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        let named = |request: Release| (self.name(&request.claim.key), request);
        let requests: Vec<_> = requests.into_iter().map(named).collect();
        self.call(by, move |step| {
            let release = |(name, request): &(String, Release)| {
                lock::with(step, name, |record| rules::release(record, request))
            };
            requests.iter().map(release).collect()
        })
    }

    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        let name = self.name(&claim.key);
        self.call_lock(by, name, move |record| {
            rules::shrink(record, &claim, permits)
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        let name = self.name(&request.claim.key);
        self.call_lock(by, name, move |record| rules::abandon(record, &request))
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        let name = self.name(&key);
        self.call_lock(by, name, move |record| rules::inspect(record))
    }

    fn holders(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Vec<FoundHolder>>> {
        let name = self.name(&key);
        self.call_lock(by, name, move |record| rules::holders(record))
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        let name = self.name(&key);
        self.call_lock(by, name, move |record| rules::force_release(record))
    }

    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        let name = self.name(&request.key);
        self.call(by, move |step| match request.window {
            Some(window) => rate::take_exactly(step, &name, window, &request),
            None => rate::take_of_bucket(step, &name, &request),
        })
    }

    fn latch_set(
        &self,
        call: LatchCall,
        count: u32,
        ttl: Duration,
        by: Instant,
    ) -> StoreFuture<'_, LatchSet> {
        let name = self.name(&call.key);
        self.call(by, move |step| latch::set(step, &name, &call, count, ttl))
    }

    fn latch_count_down(&self, call: LatchCall, by: Instant) -> StoreFuture<'_, LatchCounted> {
        let name = self.name(&call.key);
        self.call(by, move |step| latch::count_down(step, &name, &call))
    }

    fn latch_look(&self, key: LockKey, by: Instant) -> StoreFuture<'_, LatchFound> {
        let name = self.name(&key);
        self.call(by, move |step| latch::look(step, &name))
    }

    fn latch_wait(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, LatchFound> {
        let name = self.name(&place.key);
        self.call(by, move |step| latch::wait(step, &name, place.owner))
    }

    fn latch_leave(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, ()> {
        let name = self.name(&place.key);
        self.call(by, move |step| latch::leave(step, &name, place.owner))
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::all();
        can.lingers = Lingers::AtMost(LOOKS_EACH);
        can
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        let news = News::Told(Letter::of(&message, &self.namespace));
        let told = self.call(by, move |step| {
            let mut listens = false;
            for session in step.sessions_of(to.0)? {
                if step.check_alive(session)? {
                    step.notify(session, news.clone());
                    listens = true;
                }
            }
            Ok(listens)
        });
        Box::pin(async move {
            let answer = told.await.map_err(|failure| failure.error)?;
            Ok(answer.value)
        })
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        self.call(by, |_| Ok(()))
    }

    fn await_connection(&self, by: Instant) -> Asked<'_, ()> {
        let ping = self.ping(by);
        Box::pin(async move { ping.await.map(drop).map_err(|failure| failure.error) })
    }

    fn is_connected(&self) -> bool {
        self.state.opened.lock().is_some()
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(async move {
            let sent = self.clock.now();
            self.await_connection(by).await?;
            let now = self.clock.now();
            let mut health = ServerHealth::new(self.path.display().to_string());
            health.version = rusqlite::version().to_owned();
            health.role = Role::Master;
            health.replicas = Some(0);
            health.round_trip = now - sent;
            let opened = *self.state.opened.lock();
            health.connected_for = opened.map_or(Duration::ZERO, |opened| now - opened);
            Ok(vec![health])
        })
    }

    fn link(&self) -> Link {
        LINK
    }

    fn close(&self) {
        self.jobs.lock().take();
    }

    fn is_closed(&self) -> bool {
        self.jobs.lock().is_none()
    }
}
