//! The wait queue of one lock.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use crate::instant::Instant;
use crate::rules::{Waiting, is_forgotten};
use crate::timing::UNHEARD;
use crate::{ClientId, Owner};

/// This many clients are remembered before any is forgotten.
const MANY_CLIENTS: usize = 64;

/// The queue: first come, first served. Places of a client that stands still are suspended until
/// the client is heard.
#[derive(Debug, Default)]
pub(super) struct Places {
    order: BTreeMap<u64, Waiting>,
    suspended: BTreeMap<u64, Waiting>,
    numbers: HashMap<Owner, u64, RandomState>,
    heard: BTreeMap<ClientId, LastHeard>,
    last: u64,
}

/// What is known of a client.
#[derive(Clone, Copy, Debug)]
enum LastHeard {
    /// The last time that a request with a place asked again.
    At(Instant),
    /// The last time that a place of the client was suspended.
    Suspended(Instant),
}

impl Places {
    pub(super) fn contains(&self, owner: Owner) -> bool {
        self.numbers.contains_key(&owner)
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The first place that is not suspended. The clock may have been set back: a time ahead of now
    /// is set to now.
    pub(super) fn first(&mut self, now: Instant) -> Option<Waiting> {
        let mut first = self.order.first_entry()?;
        let first = first.get_mut();
        let ahead = first.heard - now;
        first.heard = first.heard - ahead;
        first.ends = first.ends.map(|ends| ends - ahead);
        let mut waiting = *first;
        if now - first.heard > UNHEARD
            && let Some(LastHeard::At(at)) = self.heard.get_mut(&first.owner.client)
        {
            *at = now.min(*at);
            waiting.heard = first.heard.max(*at);
        }
        Some(waiting)
    }

    /// Takes a place that is not there.
    pub(super) fn join(&mut self, waiting: Waiting) {
        self.last += 1;
        self.numbers.insert(waiting.owner, self.last);
        self.order.insert(self.last, waiting);
        // If places of this client were suspended, it must get them back.
        let client = waiting.owner.client;
        if let Some(LastHeard::Suspended(_)) = self.heard.get(&client) {
            self.hear(client, waiting.heard);
        }
    }

    /// A request that has a place asks again: its client runs, and gets back its places that were
    /// suspended.
    pub(super) fn hear(&mut self, client: ClientId, now: Instant) {
        if let Some(LastHeard::Suspended(_)) = self.heard.insert(client, LastHeard::At(now)) {
            let suspended = std::mem::take(&mut self.suspended).into_iter();
            let (back, rest): (BTreeMap<_, _>, _) =
                suspended.partition(|(_, place)| place.owner.client == client);
            self.order.extend(back);
            self.suspended = rest;
        }
        self.forget_one(now);
    }

    /// Forgets a place that was suspended and not asked for again: at most the first for each
    /// call. Also forgets clients that were not heard for as long.
    pub(super) fn forget_one(&mut self, now: Instant) {
        if self.heard.len() > MANY_CLIENTS {
            let suspended = &self.suspended;
            self.heard.retain(|_, heard| match heard {
                LastHeard::At(at) => !is_forgotten(*at, now),
                LastHeard::Suspended(at) => !suspended.is_empty() || !is_forgotten(*at, now),
            });
        }
        if let Some((_, Waiting { owner, .. })) = self.suspended.first_key_value()
            && self.is_over(*owner, now)
        {
            self.remove(*owner);
        }
    }

    /// True if a place was suspended long ago.
    fn is_over(&self, owner: Owner, now: Instant) -> bool {
        let heard = self.heard.get(&owner.client);
        matches!(heard, Some(LastHeard::Suspended(at)) if is_forgotten(*at, now))
    }

    /// The number of places that were not suspended long ago.
    pub(super) fn lasting(&self, now: Instant) -> usize {
        let places = self.suspended.values();
        self.len()
            - places
                .filter(|place| self.is_over(place.owner, now))
                .count()
    }

    pub(super) fn suspend_first(&mut self, now: Instant) {
        if let Some((number, place)) = self.order.pop_first() {
            self.heard
                .insert(place.owner.client, LastHeard::Suspended(now));
            self.suspended.insert(number, place);
        }
    }

    pub(super) fn remove(&mut self, owner: Owner) {
        if let Some(number) = self.numbers.remove(&owner) {
            self.order.remove(&number);
            self.suspended.remove(&number);
        }
        if self.numbers.is_empty() {
            self.heard.clear();
        }
    }
}
