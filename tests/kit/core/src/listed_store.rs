//! [`ListedStore`]: the rules of a lock over plain lists.
//!
//! It is the shortest engine that decides in the client: it reads a snapshot of one lock, applies
//! the rules, and writes it back. Other engines are compared with it.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use lock_store::rules::{self, HeldPart, HoldId, Holders, LockRecord, Waiting, next_token};
use lock_store::{
    Acquire, Acquired, AcquiredAll, Answer, Capabilities, Claim, ClientId, Fenced, HandedOver,
    Instant, Link, Listener, LockFound, LockKey, Owner, Release, Released, Renewal, Renewed, Store,
    StoreFuture, Trust,
};

const LINK: Link = Link(0);

/// Locks in lists, shared by all handles, and their time, which stands still but for the test.
#[derive(Clone, Debug)]
pub struct ListedLocks(Arc<Mutex<Listed>>);

#[derive(Debug)]
struct Listed {
    now: Instant,
    goes_on: bool,
    remembers: bool,
    locks: HashMap<LockKey, Lists>,
    listeners: HashMap<ClientId, Weak<dyn Listener>>,
}

/// One lock, as it is written down.
#[derive(Clone, Debug, Default)]
struct Lists {
    holds: Vec<(HoldId, HeldPart)>,
    places: Vec<Place>,
    /// Of which places were suspended, since they were heard.
    suspended: BTreeSet<ClientId>,
    last_token: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    waiting: Waiting,
    suspended: Option<Instant>,
}

/// One client's handle.
#[derive(Debug)]
struct ListedStore(ListedLocks);

impl ListedLocks {
    /// Free ones. `goes_on`: after each grant of a share, they hand over. `remembers`: that places
    /// of a client were suspended is known also when it has given them up, until it is heard or the
    /// queue is empty.
    #[must_use]
    pub fn new(goes_on: bool, remembers: bool) -> Self {
        Self(Arc::new(Mutex::new(Listed {
            now: Instant::from_nanos(1_000_000_000),
            goes_on,
            remembers,
            locks: HashMap::new(),
            listeners: HashMap::new(),
        })))
    }

    /// A client's handle.
    #[must_use]
    pub fn connect(&self, id: ClientId, listener: &Arc<dyn Listener>) -> Arc<dyn Store> {
        let listener = Arc::downgrade(listener);
        self.listed().listeners.insert(id, listener);
        Arc::new(ListedStore(self.clone()))
    }

    /// Lets time pass.
    pub fn pass_time(&self, time: Duration) {
        self.listed().now += time;
    }

    /// True if there are suspended places.
    #[must_use]
    pub fn has_suspended(&self) -> bool {
        let listed = self.listed();
        let mut places = listed.locks.values().flat_map(|lock| &lock.places);
        places.any(|place| place.suspended.is_some())
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().expect("no test panics with it")
    }
}

/// What a step reads and decides.
struct Snapshot<'s> {
    now: Instant,
    holders: Holders,
    places: Vec<Place>,
    suspended: BTreeSet<ClientId>,
    remembers: bool,
    last_token: u64,
    told: Vec<(Owner, Option<u64>)>,
    listeners: &'s HashMap<ClientId, Weak<dyn Listener>>,
}

impl Snapshot<'_> {
    /// The places of this owner's client.
    fn of_client(&mut self, owner: Owner) -> impl Iterator<Item = &mut Place> {
        let places = self.places.iter_mut();
        places.filter(move |place| place.waiting.owner.client == owner.client)
    }
}

impl LockRecord for Snapshot<'_> {
    type Place = Owner;
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.now
    }
    fn holders(&mut self) -> &mut Holders {
        &mut self.holders
    }
    fn is_latch(&mut self) -> Result<bool, Infallible> {
        Ok(false)
    }
    fn mint(&mut self, tokens: u32) -> Result<u64, Infallible> {
        // From one on: what the time has to do with it is each engine's own.
        let first = next_token(self.last_token, 0);
        self.last_token = first + u64::from(tokens) - 1;
        Ok(first)
    }
    fn first(&mut self) -> Result<Option<(Owner, Waiting)>, Infallible> {
        let mut places = self.places.iter();
        let first = places.find(|place| place.suspended.is_none());
        Ok(first.map(|place| (place.waiting.owner, place.waiting)))
    }
    fn is_of(&self, place: &Owner, request: &Acquire) -> bool {
        *place == request.claim.owner
    }
    fn listens(&mut self, place: &Owner) -> Result<bool, Infallible> {
        Ok(self.listeners.contains_key(&place.client))
    }
    fn notify(&mut self, place: &Owner, token: Option<u64>) {
        self.told.push((*place, token));
    }
    fn suspend(&mut self, first: &Owner) -> Result<(), Infallible> {
        let now = self.now;
        let places = self.of_client(*first);
        places
            .filter(|place| place.suspended.is_some() || place.waiting.owner == *first)
            .for_each(|place| place.suspended = Some(now));
        self.suspended.insert(first.client);
        Ok(())
    }
    fn remove(&mut self, place: &Owner) -> Result<(), Infallible> {
        self.places.retain(|one| one.waiting.owner != *place);
        if self.places.is_empty() {
            self.suspended.clear();
        }
        Ok(())
    }
    fn is_queued(&mut self, request: &Acquire) -> Result<bool, Infallible> {
        let mut places = self.places.iter();
        Ok(places.any(|place| place.waiting.owner == request.claim.owner))
    }
    fn join(&mut self, request: &Acquire) -> Result<(), Infallible> {
        let waiting = Waiting::of(request, self.now);
        let suspended = None;
        self.places.push(Place { waiting, suspended });
        let mut places = self.of_client(waiting.owner);
        let any_suspended = places.any(|place| place.suspended.is_some());
        drop(places);
        let was_suspended = self.remembers && self.suspended.contains(&waiting.owner.client);
        match any_suspended || was_suspended {
            true => self.hear(request),
            false => Ok(()),
        }
    }
    fn hear(&mut self, request: &Acquire) -> Result<(), Infallible> {
        let now = self.now;
        self.suspended.remove(&request.claim.owner.client);
        for place in self.of_client(request.claim.owner) {
            (place.waiting.heard, place.suspended) = (now, None);
        }
        self.forget_one()
    }
    fn leave(&mut self, request: &Acquire) -> Result<(), Infallible> {
        self.remove(&request.claim.owner)
    }
    fn forget_one(&mut self) -> Result<(), Infallible> {
        let mut suspended = self.places.iter().filter_map(|place| {
            let since = place.suspended?;
            Some((place.waiting.owner, since))
        });
        if let Some((owner, since)) = suspended.next()
            && rules::is_forgotten(since, self.now)
        {
            self.remove(&owner)?;
        }
        Ok(())
    }
    fn places(&mut self) -> Result<usize, Infallible> {
        Ok(self.places.len())
    }
}

impl ListedStore {
    /// Reads a lock, applies a rule, and writes what has changed.
    fn step<T>(
        &self,
        key: &LockKey,
        rule: impl FnOnce(&mut Snapshot<'_>) -> Result<T, Infallible>,
    ) -> T {
        let mut listed = self.0.listed();
        let Listed {
            now,
            remembers,
            locks,
            listeners,
            ..
        } = &mut *listed;
        let lists = locks.entry(key.clone()).or_default();
        let mut before = Holders::default();
        for (name, hold) in &lists.holds {
            before.add(*name, *hold);
        }
        let mut snapshot = Snapshot {
            now: *now,
            holders: before.clone(),
            places: lists.places.clone(),
            suspended: lists.suspended.clone(),
            remembers: *remembers,
            last_token: lists.last_token,
            told: Vec::new(),
            listeners,
        };
        snapshot.holders.sweep(snapshot.now);
        let Ok(reply) = rule(&mut snapshot);
        for (name, hold) in snapshot.holders.changes(&before) {
            lists.holds.retain(|(one, _)| *one != name);
            lists.holds.extend(hold.map(|hold| (name, hold)));
        }
        // The capacity is that of the last holder's request.
        for (_, hold) in &mut lists.holds {
            if let (Some(permits), Some(of)) = (&mut hold.permits, snapshot.holders.capacity()) {
                permits.of = of;
            }
        }
        lists.places = snapshot.places;
        lists.suspended = snapshot.suspended;
        lists.last_token = snapshot.last_token;
        for (owner, token) in snapshot.told {
            if let Some(listener) = listeners.get(&owner.client).and_then(Weak::upgrade) {
                drop(listener.on_granted(HandedOver::new(owner, token, Trust::Order(LINK))));
            }
        }
        reply
    }
}

fn reply<'s, T: Send + 's>(value: T) -> StoreFuture<'s, T> {
    Box::pin(std::future::ready(Ok(Answer::new(value, LINK))))
}

impl Store for ListedStore {
    fn acquire(&self, request: Acquire, _: Instant) -> StoreFuture<'_, Acquired> {
        let goes_on = self.0.listed().goes_on && request.claim.permits.is_some();
        reply(self.step(&request.claim.key, |lock| {
            let acquired = rules::acquire(lock, &request)?;
            if goes_on && matches!(acquired, Acquired::Granted(_)) {
                rules::hand_over(lock, None)?;
            }
            Ok(acquired)
        }))
    }
    fn acquire_all(&self, requests: Vec<Acquire>, _: Instant) -> StoreFuture<'_, AcquiredAll> {
        for (at, one) in requests.iter().enumerate() {
            let refuse = |lock: &mut Snapshot<'_>| rules::refuse_one(lock, at, one);
            if let Some(refused) = self.step(&one.claim.key, refuse) {
                return reply(refused);
            }
        }
        let grant = |one: &Acquire| self.step(&one.claim.key, |lock| rules::grant(lock, one));
        reply(AcquiredAll::granted(requests.iter().map(grant).collect()))
    }
    fn renew(&self, holds: Vec<Renewal>, _: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        let renew = |one: &Renewal| self.step(&one.claim.key, |lock| Ok(rules::renew(lock, one)));
        reply(holds.iter().map(renew).collect())
    }
    fn fence(&self, claim: Claim, _: Instant) -> StoreFuture<'_, Fenced> {
        reply(self.step(&claim.key, |lock| rules::fence(lock, &claim)))
    }
    fn release(&self, requests: Vec<Release>, _: Instant) -> StoreFuture<'_, Vec<Released>> {
        let release = |one: &Release| self.step(&one.claim.key, |lock| rules::release(lock, one));
        reply(requests.iter().map(release).collect())
    }
    fn shrink(&self, claim: Claim, permits: u32, _: Instant) -> StoreFuture<'_, Released> {
        reply(self.step(&claim.key, |lock| rules::shrink(lock, &claim, permits)))
    }
    fn abandon(&self, request: Acquire, _: Instant) -> StoreFuture<'_, Released> {
        let key = &request.claim.key;
        reply(self.step(key, |lock| rules::abandon(lock, &request)))
    }
    fn inspect(&self, key: LockKey, _: Instant) -> StoreFuture<'_, Option<LockFound>> {
        reply(self.step(&key, |lock| rules::inspect(lock)))
    }
    fn force_release(&self, key: LockKey, _: Instant) -> StoreFuture<'_, Option<bool>> {
        reply(self.step(&key, |lock| rules::force_release(lock)))
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }
    fn ping(&self, _: Instant) -> StoreFuture<'_, ()> {
        reply(())
    }
    fn link(&self) -> Link {
        LINK
    }
    fn close(&self) {}
    fn is_closed(&self) -> bool {
        false
    }
}
