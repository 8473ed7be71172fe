//! The embedded store: complete, in this process, and the executable specification of the Lua scripts.
//!
//! One [`MemoryStore`] stands for one server; each client that [`connect`](MemoryStore::connect)s gets a handle of its own.

mod holders;
mod latch;
mod lock;
mod queue;
mod rate;
mod space;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::latch::Latches;
use self::lock::{Lock, Step, released};
use self::queue::Place;
use self::rate::Buckets;
use self::space::Space;
use crate::{
    Acquire, Acquired, AcquiredAll, Answer, Claim, ClientId, Clock, Failure, Fenced, Inspection,
    LatchRequest, Latched, Link, Listener, LockKey, Queue, RateRequest, Rated, Release, Released,
    Renewal, Renewed, Share, Store, StoreFuture,
};

/// There is only one way to it.
const LINK: Link = Link(0);

/// A server in this process. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    server: Arc<Mutex<Server>>,
}

#[derive(Debug)]
struct Server {
    spaces: Vec<Space>,
    rates: Buckets,
    latches: Latches,
    listeners: BTreeMap<ClientId, Weak<dyn Listener>>,
    /// What the server's clock said at `started`, in microseconds since 1970.
    started_micros: u64,
    started: Option<Instant>,
    /// The latest that its clock has said.
    latest_micros: u64,
}

/// Namespace and key.
type Name = (Arc<str>, LockKey);

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let micros = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_micros());
        Self::started_at(u64::try_from(micros).unwrap_or(0))
    }

    /// An empty store whose clock begins with so many microseconds since 1970.
    #[must_use]
    pub fn started_at(started_micros: u64) -> Self {
        let server = Server {
            spaces: Vec::new(),
            rates: Buckets::default(),
            latches: Latches::default(),
            listeners: BTreeMap::new(),
            started_micros,
            started: None,
            latest_micros: 0,
        };
        Self {
            server: Arc::new(Mutex::new(server)),
        }
    }

    /// A client's handle.
    pub fn connect(
        &self,
        namespace: &str,
        client: ClientId,
        listener: &Arc<dyn Listener>,
        clock: Clock,
    ) -> Arc<dyn Store> {
        let mut server = self.lock();
        server.listeners.insert(client, Arc::downgrade(listener));
        let spaces = &mut server.spaces;
        let known = spaces.iter().position(|one| &*one.namespace == namespace);
        let space = known.unwrap_or_else(|| {
            spaces.push(Space::new(namespace));
            spaces.len() - 1
        });
        Arc::new(Connected {
            store: self.clone(),
            namespace: Arc::clone(&spaces[space].namespace),
            space,
            client,
            clock,
        })
    }

    /// Loses all data, as a server without persistence does at a restart.
    pub fn lose_everything(&self) {
        let mut server = self.lock();
        server.spaces.iter_mut().for_each(Space::clear);
        server.rates.clear();
        server.latches.clear();
        let listeners: Vec<_> = server
            .listeners
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        drop(server);
        for listener in listeners {
            listener.recheck();
        }
    }

    /// How many keys, places in queues and buckets that are not full there are, expired ones not counted at `now`.
    #[must_use]
    pub fn leftovers(&self, now: Instant) -> usize {
        let server = self.lock();
        let locks: usize = server.spaces.iter().map(|one| one.leftovers(now)).sum();
        locks + server.rates.count(now) + server.latches.leftovers(now)
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client's handle to a [`MemoryStore`].
#[derive(Debug)]
struct Connected {
    store: MemoryStore,
    namespace: Arc<str>,
    /// Where the locks of this namespace are; none is ever removed.
    space: usize,
    client: ClientId,
    clock: Clock,
}

impl Server {
    /// Its clock, in microseconds since 1970. Never goes back: tokens below it are forgotten, and must not come again
    /// when a simulation sets the clock back.
    fn micros(&mut self, now: Instant) -> u64 {
        let started = *self.started.get_or_insert(now);
        let elapsed = now.saturating_duration_since(started).as_micros();
        let micros = self
            .started_micros
            .saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX));
        self.latest_micros = self.latest_micros.max(micros);
        self.latest_micros
    }
}

impl Connected {
    fn name(&self, key: &LockKey) -> Name {
        (Arc::clone(&self.namespace), key.clone())
    }

    /// Runs one verb on one lock.
    fn with<T>(&self, key: &LockKey, verb: impl FnOnce(&mut Step<'_>, &mut Lock) -> T) -> T {
        self.step(|step, space| {
            let lock = space.lock(key, step.now, step.micros);
            lock.holders.sweep(step.now);
            verb(step, lock)
        })
    }

    /// Runs one verb at once, and wakes the waiters to whom it handed a lock.
    fn step<T>(&self, verb: impl FnOnce(&mut Step<'_>, &mut Space) -> T) -> T {
        let mut guard = self.store.lock();
        let server = &mut *guard;
        let now = self.clock.now();
        let micros = server.micros(now);
        let mut step = Step {
            now,
            micros,
            latches: &server.latches,
            listeners: &server.listeners,
            wake_ups: Vec::new(),
        };
        let value = verb(&mut step, &mut server.spaces[self.space]);
        // Its waiter hears of a grant before anybody can learn more from this server, and is woken when it is unlocked.
        let wake_ups = step.wake_ups;
        drop(guard);
        drop(wake_ups);
        value
    }
}

impl Connected {
    /// All of them, or none.
    fn take_all(
        &self,
        step: &mut Step<'_>,
        space: &mut Space,
        requests: &[Acquire],
    ) -> AcquiredAll {
        for (at, request) in requests.iter().enumerate() {
            if self.is_latch(step, &request.claim.key) {
                return AcquiredAll::Conflict(at);
            }
            let Some(lock) = space.get_mut(&request.claim.key) else {
                continue;
            };
            lock.holders.sweep(step.now);
            if lock.holders.is_other_kind(request.claim.share) {
                return AcquiredAll::Conflict(at);
            }
            if request.queue == Queue::Respect && lock.holders.is_empty() {
                lock.hand_over(step, None);
            }
            if !lock.holders.is_empty() && lock.holders.held(&request.claim).is_none() {
                return AcquiredAll::Busy(at);
            }
        }
        let take = |request: &Acquire| {
            let place = Place {
                owner: request.claim.owner,
                share: request.claim.share,
                first_lease: request.first_lease,
                tokens: request.tokens,
            };
            let lock = space.lock(&request.claim.key, step.now, step.micros);
            lock.grant(step, &place, request.lease)
        };
        AcquiredAll::Granted {
            tokens: requests.iter().map(take).collect(),
        }
    }

    fn reply<'s, T: Send + 's>(value: T) -> StoreFuture<'s, T> {
        let answer: Result<Answer<T>, Failure> = Ok(Answer { value, link: LINK });
        Box::pin(std::future::ready(answer))
    }
}

impl Store for Connected {
    fn acquire(&self, request: Acquire, _by: Instant) -> StoreFuture<'_, Acquired> {
        Self::reply(self.with(&request.claim.key, |step, lock| {
            if self.is_latch(step, &request.claim.key) {
                return Acquired::Conflict;
            }
            lock.acquire(step, &request)
        }))
    }

    fn acquire_all(&self, requests: Vec<Acquire>, _by: Instant) -> StoreFuture<'_, AcquiredAll> {
        Self::reply(self.step(|step, space| self.take_all(step, space, &requests)))
    }

    fn renew(&self, holds: Vec<Renewal>, _by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        let renew = |Renewal { claim, lease }: Renewal| {
            self.with(&claim.key, |step, lock| {
                if lock.holders.held(&claim).is_none() {
                    return Renewed::Gone;
                }
                lock.holders.prolong(claim.owner, step.now + lease);
                Renewed::Renewed
            })
        };
        Self::reply(holds.into_iter().map(renew).collect())
    }

    fn fence(&self, claim: Claim, _by: Instant) -> StoreFuture<'_, Fenced> {
        Self::reply(self.with(&claim.key, |step, lock| {
            if self.is_latch(step, &claim.key) {
                return Fenced::Conflict;
            }
            if lock.holders.held(&claim).is_some() {
                Fenced::Token(lock.mint(step, 1))
            } else {
                Fenced::Gone
            }
        }))
    }

    fn release(&self, requests: Vec<Release>, _by: Instant) -> StoreFuture<'_, Vec<Released>> {
        let release = |request: &Release| {
            self.with(&request.claim.key, |step, lock| lock.release(step, request))
        };
        Self::reply(requests.iter().map(release).collect())
    }

    fn shrink(&self, claim: Claim, permits: u32, _by: Instant) -> StoreFuture<'_, Released> {
        Self::reply(self.with(&claim.key, |step, lock| {
            let rest = Claim {
                share: claim.share.map(|share| Share { permits, ..share }),
                ..claim.clone()
            };
            let held = lock.holders.held(&claim);
            if held.is_some() {
                lock.holders.shrink(claim.owner, permits);
            }
            let done = held.is_some() || lock.holders.held(&rest).is_some();
            if !lock.holders.is_exclusive() {
                lock.hand_over(step, None);
            }
            released(done)
        }))
    }

    fn resize(&self, key: LockKey, of: u32, _by: Instant) -> StoreFuture<'_, bool> {
        Self::reply(self.with(&key, |step, lock| {
            if lock.holders.is_exclusive() || lock.holders.is_read_write() {
                return false;
            }
            lock.holders.resize(of);
            lock.hand_over(step, None);
            true
        }))
    }

    fn abandon(&self, request: Acquire, _by: Instant) -> StoreFuture<'_, Released> {
        Self::reply(self.with(&request.claim.key, |step, lock| {
            lock.queue.remove(request.claim.owner);
            let release = Release {
                claim: request.claim.clone(),
                keep: Duration::ZERO,
            };
            lock.release(step, &release)
        }))
    }

    fn inspect(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        Self::reply(self.with(&key, |step, lock| {
            if self.is_latch(step, &key) {
                return None;
            }
            let last = lock.holders.last();
            Some(Inspection {
                remaining: last.as_ref().map(|(_, expires)| *expires - step.now),
                holder: last.map(|(holder, _)| holder),
                holders: lock.holders.len(),
                waiting: lock.queue.len(),
            })
        }))
    }

    fn force_release(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, Option<bool>> {
        Self::reply(self.with(&key, |step, lock| {
            if self.is_latch(step, &key) {
                return None;
            }
            let held = !lock.holders.is_empty();
            lock.holders.clear();
            lock.hand_over(step, None);
            Some(held)
        }))
    }

    fn rate(&self, request: RateRequest, _by: Instant) -> StoreFuture<'_, Rated> {
        Self::reply(self.take_tokens(&request))
    }

    fn latch(&self, request: LatchRequest, _by: Instant) -> StoreFuture<'_, Latched> {
        Self::reply(self.latch_now(&request))
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
