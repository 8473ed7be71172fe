//! The embedded store: complete, in this process, and the executable specification of the Lua scripts.
//!
//! One [`MemoryStore`] stands for one server; each client that [`connect`](MemoryStore::connect)s gets a handle of its own.

mod latch;
mod queue;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::latch::Latches;
use self::queue::{Place, Places};
use super::{
    Acquire, Acquired, Answer, ClientId, Failure, Fenced, Inspection, LatchRequest, Latched, Link,
    Listener, Owner, Queue, Release, Released, Renewal, Renewed, Store, StoreFuture, WakeUp,
};
use crate::clock::Clock;
use crate::key::LockKey;

/// A server in this process. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    server: Arc<Mutex<Server>>,
}

#[derive(Debug)]
struct Server {
    locks: HashMap<Name, Lock>,
    latches: Latches,
    listeners: HashMap<ClientId, Weak<dyn Listener>>,
    /// What the server's clock said at `started`, in microseconds since 1970.
    started_micros: u64,
    started: Option<Instant>,
    /// When `locks` has grown to this, expired ones are removed.
    sweep_at: usize,
}

/// Namespace and key.
type Name = (Arc<str>, LockKey);

#[derive(Debug, Default)]
struct Lock {
    holder: Option<Holder>,
    queue: Places,
    last_token: u64,
}

#[derive(Debug)]
struct Holder {
    owner: Owner,
    expires: Instant,
    /// Released, and kept for the rest of `hold_at_least`: nobody's any more.
    kept: bool,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.owner, if self.kept { ":kept" } else { "" })
    }
}

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
        let server = Server {
            locks: HashMap::new(),
            latches: Latches::default(),
            listeners: HashMap::new(),
            started_micros: u64::try_from(micros).unwrap_or(0),
            started: None,
            sweep_at: 64,
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
        self.lock()
            .listeners
            .insert(client, Arc::downgrade(listener));
        Arc::new(Connected {
            store: self.clone(),
            namespace: namespace.into(),
            client,
            clock,
        })
    }

    /// Loses all data, as a server without persistence does at a restart.
    pub fn lose_everything(&self) {
        let mut server = self.lock();
        server.locks.clear();
        server.latches.clear();
        let listeners: Vec<_> = server
            .listeners
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        drop(server);
        for listener in listeners {
            listener.look_again();
        }
    }

    /// How many keys and places in queues there are, expired ones not counted at `now`.
    #[must_use]
    pub fn leftovers(&self, now: Instant) -> usize {
        let server = self.lock();
        let count = |lock: &Lock| {
            usize::from(lock.holder.as_ref().is_some_and(|h| h.expires > now)) + lock.queue.len()
        };
        server.locks.values().map(count).sum::<usize>() + server.latches.leftovers(now)
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
    client: ClientId,
    clock: Clock,
}

impl Server {
    /// Its clock, in microseconds since 1970.
    fn micros(&mut self, now: Instant) -> u64 {
        let started = *self.started.get_or_insert(now);
        let elapsed = now.saturating_duration_since(started).as_micros();
        self.started_micros
            .saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

impl Connected {
    fn name(&self, key: &LockKey) -> Name {
        (Arc::clone(&self.namespace), key.clone())
    }

    /// Runs one verb, and tells the waiter to whom it handed the lock.
    fn with<T>(&self, key: &LockKey, verb: impl FnOnce(&mut Step<'_>, &mut Lock) -> T) -> T {
        let mut guard = self.store.lock();
        let server = &mut *guard;
        let now = self.clock.now();
        let micros = server.micros(now);
        let mut step = Step {
            now,
            micros,
            latches: &server.latches,
            listeners: &server.listeners,
            wake_up: None,
        };
        let lock = server.locks.entry(self.name(key)).or_default();
        if lock
            .holder
            .as_ref()
            .is_some_and(|holder| holder.expires <= now)
        {
            lock.holder = None;
        }
        let value = verb(&mut step, lock);
        // Its waiter hears of a grant before anybody can learn more from this server, and is woken when it is unlocked.
        let (wake_up, idle) = (step.wake_up.take(), lock.is_idle(micros));
        if idle {
            server.locks.remove(&self.name(key));
        } else if server.locks.len() >= server.sweep_at {
            server.locks.retain(|_, lock| {
                let held = lock
                    .holder
                    .as_ref()
                    .is_some_and(|holder| holder.expires > now);
                held || lock.queue.len() > 0 || lock.last_token >= micros
            });
            server.sweep_at = (server.locks.len() * 2).max(64);
        }
        drop(guard);
        drop(wake_up);
        value
    }
}

/// What one verb sees of the server besides its lock.
struct Step<'s> {
    now: Instant,
    micros: u64,
    latches: &'s Latches,
    listeners: &'s HashMap<ClientId, Weak<dyn Listener>>,
    wake_up: Option<WakeUp>,
}

impl Lock {
    fn is_held_by(&self, owner: Owner) -> bool {
        self.holder
            .as_ref()
            .is_some_and(|holder| holder.owner == owner && !holder.kept)
    }

    /// Whether nothing would change if it were forgotten. A token below the server's time needs no memory.
    fn is_idle(&self, micros: u64) -> bool {
        self.holder.is_none() && self.queue.len() == 0 && self.last_token < micros
    }

    fn mint(&mut self, step: &Step<'_>) -> u64 {
        self.last_token = (self.last_token + 1).max(step.micros);
        self.last_token
    }

    fn grant(
        &mut self,
        step: &Step<'_>,
        owner: Owner,
        lease: Duration,
        fence: bool,
    ) -> Option<u64> {
        let expires = step.now + lease;
        // A repeat never makes the owner's hold shorter.
        let earlier = self.holder.take().map_or(expires, |holder| holder.expires);
        self.holder = Some(Holder {
            owner,
            expires: expires.max(earlier),
            kept: false,
        });
        fence.then(|| self.mint(step))
    }

    /// Gives a free lock to the first in the queue whose client still listens. False if there is none.
    fn hand_over(&mut self, step: &mut Step<'_>) -> bool {
        while let Some(place) = self.queue.pop() {
            let Some(listener) = step
                .listeners
                .get(&place.owner.client)
                .and_then(Weak::upgrade)
            else {
                continue;
            };
            let token = self.grant(step, place.owner, place.first_lease, place.fence);
            step.wake_up = Some(listener.granted(place.owner, token));
            return true;
        }
        false
    }

    fn acquire(&mut self, step: &mut Step<'_>, request: &Acquire) -> Acquired {
        let mine = self.is_held_by(request.owner);
        if mine || (self.holder.is_none() && self.is_next(step, request)) {
            self.queue.remove(request.owner);
            return Acquired::Granted {
                token: self.grant(step, request.owner, request.lease, request.fence),
            };
        }
        if request.queue == Queue::Join {
            let (owner, first_lease, fence) = (request.owner, request.first_lease, request.fence);
            self.queue.join(Place {
                owner,
                first_lease,
                fence,
            });
        }
        let remaining = self.holder.as_ref().map(|holder| holder.expires - step.now);
        Acquired::Busy {
            remaining,
            queued: self.queue.contains(request.owner),
        }
    }

    /// Whether a free lock is the requester's; otherwise it is handed to whom it belongs.
    fn is_next(&mut self, step: &mut Step<'_>, request: &Acquire) -> bool {
        if request.queue == Queue::Barge || self.queue.first() == Some(request.owner) {
            return true;
        }
        // The requester may stand further back: places in front of it whose client is gone are skipped.
        while let Some(first) = self.queue.first() {
            if first == request.owner {
                return true;
            }
            if step
                .listeners
                .get(&first.client)
                .and_then(Weak::upgrade)
                .is_some()
            {
                return !self.hand_over(step);
            }
            self.queue.pop();
        }
        true
    }

    fn end(&mut self, step: &mut Step<'_>) {
        self.holder = None;
        self.hand_over(step);
    }
}

impl Connected {
    fn reply<'s, T: Send + 's>(value: T) -> StoreFuture<'s, T> {
        let answer: Result<Answer<T>, Failure> = Ok(Answer {
            value,
            link: Link(0),
        });
        Box::pin(std::future::ready(answer))
    }
}

impl Store for Connected {
    fn acquire(&self, request: Acquire, _by: Instant) -> StoreFuture<'_, Acquired> {
        Self::reply(self.with(&request.key, |step, lock| {
            if self.is_latch(step, &request.key) {
                return Acquired::Conflict;
            }
            lock.acquire(step, &request)
        }))
    }

    fn renew(&self, holds: Vec<Renewal>, _by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        let renew = |hold: Renewal| {
            self.with(&hold.key, |step, lock| match &mut lock.holder {
                Some(holder) if holder.owner == hold.owner && !holder.kept => {
                    holder.expires = holder.expires.max(step.now + hold.lease);
                    Renewed::Renewed
                }
                _ => Renewed::Gone,
            })
        };
        Self::reply(holds.into_iter().map(renew).collect())
    }

    fn fence(&self, key: LockKey, owner: Owner, _by: Instant) -> StoreFuture<'_, Fenced> {
        Self::reply(self.with(&key, |step, lock| {
            if self.is_latch(step, &key) {
                return Fenced::Conflict;
            }
            if lock.is_held_by(owner) {
                Fenced::Token(lock.mint(step))
            } else {
                Fenced::Gone
            }
        }))
    }

    fn release(&self, request: Release, _by: Instant) -> StoreFuture<'_, Released> {
        Self::reply(
            self.with(&request.key, |step, lock| match &mut lock.holder {
                Some(holder) if holder.owner == request.owner && !holder.kept => {
                    if request.keep > Duration::ZERO {
                        holder.expires = step.now + request.keep;
                        holder.kept = true;
                    } else {
                        lock.end(step);
                    }
                    Released::Released
                }
                _ => Released::NotHeld,
            }),
        )
    }

    fn abandon(&self, request: Acquire, _by: Instant) -> StoreFuture<'_, Released> {
        Self::reply(self.with(&request.key, |step, lock| {
            lock.queue.remove(request.owner);
            if lock.is_held_by(request.owner) {
                lock.end(step);
                Released::Released
            } else {
                Released::NotHeld
            }
        }))
    }

    fn inspect(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        Self::reply(self.with(&key, |step, lock| {
            if self.is_latch(step, &key) {
                return None;
            }
            Some(Inspection {
                holder: lock.holder.as_ref().map(Holder::to_string),
                remaining: lock.holder.as_ref().map(|holder| holder.expires - step.now),
                waiting: lock.queue.len(),
            })
        }))
    }

    fn force_release(&self, key: LockKey, _by: Instant) -> StoreFuture<'_, Option<bool>> {
        Self::reply(self.with(&key, |step, lock| {
            if self.is_latch(step, &key) {
                return None;
            }
            let held = lock.holder.is_some();
            if held {
                lock.end(step);
            }
            Some(held)
        }))
    }

    fn latch(&self, request: LatchRequest, _by: Instant) -> StoreFuture<'_, Latched> {
        Self::reply(self.latch_now(&request))
    }

    fn ping(&self, _by: Instant) -> StoreFuture<'_, ()> {
        Self::reply(())
    }

    fn link(&self) -> Link {
        Link(0)
    }

    fn close(&self) {
        self.store.lock().listeners.remove(&self.client);
    }

    fn is_closed(&self) -> bool {
        false
    }
}
