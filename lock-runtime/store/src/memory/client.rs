//! One client's handle to a server, with the operations of the contract.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::SharedName;
use super::latch::Entry;
use super::lock::{ConnectedClient, LINK, MemoryRecord, MemoryStep};
use super::server::{MemoryStore, Server};
use super::space::Space;
use crate::instant::Instant;
use crate::rules;
use crate::{
    Acquire, Acquired, AcquiredAll, Answer, Asked, Capabilities, Claim, ClientId, ClientMessage,
    Clock, Fenced, FoundHolder, HandedOver, LatchCall, LatchCounted, LatchFound, LatchSet, Link,
    LockFound, LockKey, Namespace, RateRequest, Rated, Release, Released, Renewal, Renewed,
    Replied, Store, StoreContext, StoreFuture, Trust, WakeUp,
};

impl MemoryStore {
    /// Connects a client, and returns its handle.
    pub fn connect(&self, context: StoreContext) -> Arc<dyn Store> {
        let connected = self.client(context.namespace.as_str(), context.client, context.clock);
        let listening = ConnectedClient {
            namespace: Arc::clone(&connected.namespace),
            listener: context.listener,
        };
        self.lock().listeners.insert(context.client, listening);
        Arc::new(connected)
    }

    pub(super) fn client(&self, namespace: &str, client: ClientId, clock: Clock) -> MemoryClient {
        let mut server = self.lock();
        let space = server.space(namespace);
        MemoryClient {
            store: self.clone(),
            namespace: Arc::clone(&server.spaces[space].namespace),
            space,
            client,
            clock,
        }
    }
}

/// One client's handle to a [`MemoryStore`].
#[derive(Debug)]
pub(super) struct MemoryClient {
    store: MemoryStore,
    namespace: Arc<str>,
    /// The index of this namespace's locks. No index is ever removed.
    space: usize,
    client: ClientId,
    clock: Clock,
}

impl MemoryClient {
    fn name(&self, key: &LockKey) -> SharedName {
        let namespace = match key.namespace() {
            Some(namespace) => namespace.as_str().into(),
            None => Arc::clone(&self.namespace),
        };
        (namespace, bare(key))
    }

    /// Runs one operation on one lock.
    pub(super) fn with<T>(
        &self,
        key: &LockKey,
        verb: impl FnOnce(&mut MemoryRecord<'_, '_>) -> Result<T, Infallible>,
    ) -> T {
        self.step(key, |step, space| verb(&mut self.record(step, space, key)))
    }

    fn record<'r, 's>(
        &self,
        step: &'r mut MemoryStep<'s>,
        space: &'r mut Space,
        key: &LockKey,
    ) -> MemoryRecord<'r, 's> {
        let lock = space.lock(&bare(key), step.now, step.micros);
        lock.holders.sweep(step.now);
        let name = (!step.latches.is_empty()).then(|| self.name(key));
        MemoryRecord { step, lock, name }
    }

    /// Runs one operation at once in this key's namespace. Then wakes the waiters that it granted a
    /// lock.
    fn step<T>(
        &self,
        key: &LockKey,
        verb: impl FnOnce(&mut MemoryStep<'_>, &mut Space) -> Result<T, Infallible>,
    ) -> T {
        let mut guard = self.store.lock();
        let server = &mut *guard;
        let now = self.clock.now();
        let micros = server.micros(now);
        let space = self.space(server, key);
        let mut step = MemoryStep {
            now,
            micros,
            latches: &server.latches,
            listeners: &server.listeners,
            wake_ups: Vec::new(),
        };
        let Ok(value) = verb(&mut step, &mut server.spaces[space]);
        // The waiter's listener gets a grant before anybody can learn more from this server. The
        // waiter is woken after the server is unlocked.
        let wake_ups = step.wake_ups;
        drop(guard);
        drop(wake_ups);
        value
    }

    /// The index of the locks in the key's namespace.
    fn space(&self, server: &mut Server, key: &LockKey) -> usize {
        match key.namespace() {
            Some(namespace) => server.space(namespace.as_str()),
            None => self.space,
        }
    }
}

/// The key without its namespace.
fn bare(key: &LockKey) -> LockKey {
    key.clone().in_namespace(None)
}

impl MemoryClient {
    /// Takes all of them, or none.
    fn take_all(
        &self,
        step: &mut MemoryStep<'_>,
        space: &mut Space,
        requests: &[Acquire],
    ) -> Result<AcquiredAll, Infallible> {
        for (at, request) in requests.iter().enumerate() {
            let mut record = self.record(step, space, &request.claim.key);
            if let Some(refused) = rules::refuse_one(&mut record, at, request)? {
                return Ok(refused);
            }
        }
        let grant = |request: &Acquire| {
            rules::grant(&mut self.record(step, space, &request.claim.key), request)
        };
        let tokens: Result<_, _> = requests.iter().map(grant).collect();
        tokens.map(AcquiredAll::granted)
    }

    fn take_tokens(&self, request: &RateRequest) -> Rated {
        let mut server = self.store.lock();
        let now = self.clock.now();
        let name = self.name(&request.key);
        match request.window {
            Some(window) => server.pass_logs.take(name, now, window, request),
            None => server.rates.take(name, now, request),
        }
    }

    /// Runs one operation on a latch; `None` if the key is a held lock.
    fn with_latch<T>(
        &self,
        key: &LockKey,
        verb: impl FnOnce(&mut Entry, Instant, u64) -> (T, Option<u64>),
    ) -> Option<T> {
        let mut guard = self.store.lock();
        let server = &mut *guard;
        let now = self.clock.now();
        let micros = server.micros(now);
        let name = self.name(key);
        let space = self.space(server, key);
        let lock = server.spaces[space].get(&name.1);
        if lock.is_some_and(|lock| lock.holders.live(now) > 0) {
            return None;
        }
        let entry = server.latches.entry(name.clone(), now);
        let (reply, opened) = verb(entry, now, micros);
        // The waiters' listeners get the message before anybody can learn more from this server.
        // The waiters are woken after it is unlocked.
        let mut wake_ups = Vec::<WakeUp>::new();
        if let Some(generation) = opened {
            for owner in entry.take_waiters() {
                let listener = server.listeners.get(&owner.client);
                if let Some(listener) = listener.and_then(ConnectedClient::listener) {
                    let opened = HandedOver::new(owner, Some(generation), Trust::Order(LINK));
                    wake_ups.push(listener.on_granted(opened));
                }
            }
        }
        server.latches.forget_if_empty(&name);
        drop(guard);
        drop(wake_ups);
        Some(reply)
    }

    fn reply<'s, T: Send + 's>(value: T) -> StoreFuture<'s, T> {
        let answer: Replied<T> = Ok(Answer { value, link: LINK });
        Box::pin(std::future::ready(answer))
    }
}

impl Store for MemoryClient {
    fn acquire(&self, request: Acquire, _by: Instant) -> StoreFuture<'_, Acquired> {
        let key = &request.claim.key;
        Self::reply(self.with(key, |record| rules::acquire(record, &request)))
    }

    fn acquire_all(&self, requests: Vec<Acquire>, _by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let Some(first) = requests.first() else {
            return Self::reply(AcquiredAll::granted(Vec::new()));
        };
        // All requests of one call are of one namespace.
        let taken = self.step(&first.claim.key, |step, space| {
            self.take_all(step, space, &requests)
        });
        Self::reply(taken)
    }

    fn renew(&self, holds: Vec<Renewal>, _by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        let renew = |renewal: &Renewal| {
            self.with(&renewal.claim.key, |record| {
                Ok(rules::renew(record, renewal))
            })
        };
        Self::reply(holds.iter().map(renew).collect())
    }

    fn fence(&self, claim: Claim, _by: Instant) -> StoreFuture<'_, Fenced> {
        Self::reply(self.with(&claim.key, |record| rules::fence(record, &claim)))
    }

    fn release(&self, requests: Vec<Release>, _by: Instant) -> StoreFuture<'_, Vec<Released>> {
        let release = |request: &Release| {
            self.with(&request.claim.key, |record| rules::release(record, request))
        };
        Self::reply(requests.iter().map(release).collect())
    }

    fn shrink(&self, claim: Claim, permits: u32, _by: Instant) -> StoreFuture<'_, Released> {
        let key = &claim.key;
        Self::reply(self.with(key, |record| rules::shrink(record, &claim, permits)))
    }

    fn abandon(&self, request: Acquire, _by: Instant) -> StoreFuture<'_, Released> {
        let key = &request.claim.key;
        Self::reply(self.with(key, |record| rules::abandon(record, &request)))
    }

    fn inspect(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        Self::reply(self.with(&key, |record| rules::inspect(record)))
    }

    fn holders(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, Option<Vec<FoundHolder>>> {
        Self::reply(self.with(&key, |record| rules::holders(record)))
    }

    fn force_release(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, Option<bool>> {
        Self::reply(self.with(&key, |record| rules::force_release(record)))
    }

    fn rate(&self, request: RateRequest, _by: Instant) -> StoreFuture<'_, Rated> {
        Self::reply(self.take_tokens(&request))
    }

    fn latch_set(
        &self,
        call: LatchCall,
        count: u32,
        ttl: Duration,
        _by: Instant,
    ) -> StoreFuture<'_, LatchSet> {
        let reply = self.with_latch(&call.key, |latch, now, micros| {
            (latch.set(&call, count, ttl, now, micros), None)
        });
        Self::reply(reply.unwrap_or(LatchSet::Conflict))
    }

    fn latch_count_down(&self, call: LatchCall, _by: Instant) -> StoreFuture<'_, LatchCounted> {
        let reply = self.with_latch(&call.key, |latch, now, micros| {
            latch.count_down(&call, now, micros)
        });
        Self::reply(reply.unwrap_or(LatchCounted::Conflict))
    }

    fn latch_look(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, LatchFound> {
        let reply = self.with_latch(&key, |latch, now, _| (latch.look(now), None));
        Self::reply(reply.unwrap_or(LatchFound::Conflict))
    }

    fn latch_wait(&self, place: LatchCall, _by: Instant) -> StoreFuture<'_, LatchFound> {
        let reply = self.with_latch(&place.key, |latch, now, _| {
            (latch.wait(place.owner, now), None)
        });
        Self::reply(reply.unwrap_or(LatchFound::Conflict))
    }

    fn latch_leave(&self, place: LatchCall, _by: Instant) -> StoreFuture<'_, ()> {
        self.with_latch(&place.key, |latch, _, _| (latch.leave(place.owner), None));
        Self::reply(())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn tell(&self, to: ClientId, message: ClientMessage, _by: Instant) -> Asked<'_, bool> {
        let server = self.store.lock();
        let hearer = server.listeners.get(&to);
        let hearer = hearer.and_then(|one| Some((one.listener()?, Arc::clone(&one.namespace))));
        drop(server);
        let listens = hearer.is_some();
        if let Some((listener, namespace)) = hearer {
            let (of_key, _) = self.name(message.key());
            let own = (of_key != namespace).then(|| Namespace::new(&of_key).ok());
            let key = message.key().clone().in_namespace(own.flatten());
            listener.on_message(message.about(key));
        }
        Box::pin(async move { Ok(listens) })
    }

    fn ping(&self, _by: Instant) -> StoreFuture<'_, ()> {
        Self::reply(())
    }

    fn link(&self) -> Link {
        LINK
    }

    fn close(&self) {
        self.store.lock().listeners.remove(&self.client);
    }

    fn is_closed(&self) -> bool {
        false
    }
}
