//! The wait queue of one lock.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::instant::Instant;
use crate::timing::{QUEUE_TTL, UNHEARD};
use crate::{Acquire, ClientId, Owner, Permits};

/// This many clients are remembered before any is forgotten.
const MANY_CLIENTS: usize = 64;

/// The queue: first come, first served. Places of a client that stands still are passed over until
/// the client is heard.
#[derive(Debug, Default)]
pub(super) struct Places {
    order: BTreeMap<u64, Waiting>,
    passed_over: BTreeMap<u64, Waiting>,
    numbers: HashMap<Place, u64, RandomState>,
    heard: BTreeMap<ClientId, Heard>,
    last: u64,
}

/// A place. The same request can name it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) owner: Owner,
    pub(super) permits: Option<Permits>,
    pub(super) first_lease: Duration,
    pub(super) wait: Option<Duration>,
    pub(super) tokens: u32,
}

/// What is known of a client.
#[derive(Clone, Copy, Debug)]
enum Heard {
    /// The last time that a request with a place asked again.
    At(Instant),
    /// The last time that a place of the client was passed over.
    PassedOver(Instant),
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    place: Place,
    since: Instant,
}

/// The first place that was not passed over.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) place: Place,
    pub(super) since: Instant,
}

impl Place {
    pub(super) fn of(request: &Acquire) -> Self {
        Self {
            owner: request.claim.owner,
            permits: request.claim.permits,
            first_lease: request.first_lease,
            wait: request.wait,
            tokens: request.tokens,
        }
    }
}

impl First {
    /// True if its request has given up, or would have if it ran.
    pub(super) fn has_ended(&self, now: Instant) -> bool {
        self.place.wait.is_some_and(|wait| now > self.since + wait)
    }
}

impl Places {
    pub(super) fn contains(&self, place: &Place) -> bool {
        self.numbers.contains_key(place)
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn first(&self) -> Option<First> {
        let (_, Waiting { place, since }) = self.order.first_key_value()?;
        Some(First {
            place: *place,
            since: *since,
        })
    }

    pub(super) fn join(&mut self, place: Place, now: Instant) {
        if !self.contains(&place) {
            self.last += 1;
            self.numbers.insert(place, self.last);
            self.order.insert(self.last, Waiting { place, since: now });
            // If places of this client were passed over, it must get them back.
            if let Some(Heard::PassedOver(_)) = self.heard.get(&place.owner.client) {
                self.look_again(&place, now);
            }
        }
    }

    /// A request that has a place asks again: its client runs, and gets back its places that were
    /// passed over.
    pub(super) fn look_again(&mut self, place: &Place, now: Instant) {
        if !self.contains(place) {
            return;
        }
        let client = place.owner.client;
        if let Some(Heard::PassedOver(_)) = self.heard.insert(client, Heard::At(now)) {
            let passed_over = std::mem::take(&mut self.passed_over).into_iter();
            let (back, rest): (BTreeMap<_, _>, _) =
                passed_over.partition(|(_, it)| it.place.owner.client == client);
            self.order.extend(back);
            self.passed_over = rest;
        }
        self.forget_one(now);
    }

    /// Forgets a place that was passed over and not asked for again: at most the first for each
    /// call. Also forgets clients that were not heard for as long.
    pub(super) fn forget_one(&mut self, now: Instant) {
        if self.heard.len() > MANY_CLIENTS {
            let passed_over = &self.passed_over;
            self.heard.retain(|_, heard| match heard {
                Heard::At(at) => now <= *at + QUEUE_TTL,
                Heard::PassedOver(at) => !passed_over.is_empty() || now <= *at + QUEUE_TTL,
            });
        }
        if let Some((_, Waiting { place, .. })) = self.passed_over.first_key_value()
            && self.is_forgotten(place, now)
        {
            let place = *place;
            self.remove(&place);
        }
    }

    /// True if a place was passed over long ago.
    fn is_forgotten(&self, place: &Place, now: Instant) -> bool {
        let heard = self.heard.get(&place.owner.client);
        matches!(heard, Some(Heard::PassedOver(at)) if now > *at + QUEUE_TTL)
    }

    /// The number of places that were not passed over long ago.
    pub(super) fn lasting(&self, now: Instant) -> usize {
        let places = self.passed_over.values().map(|waiting| &waiting.place);
        self.len() - places.filter(|place| self.is_forgotten(place, now)).count()
    }

    /// True if the client of the first place was not heard for long. The clock may have been set
    /// back: a time ahead of now is set to now.
    pub(super) fn first_stands_still(&mut self, now: Instant) -> bool {
        let Some(mut first) = self.order.first_entry() else {
            return false;
        };
        let Waiting { place, since } = first.get_mut();
        if *since > now {
            *since = now;
            return false;
        }
        if now.saturating_duration_since(*since) <= UNHEARD {
            return false;
        }
        match self.heard.get_mut(&place.owner.client) {
            None | Some(Heard::PassedOver(_)) => true,
            Some(Heard::At(heard)) if *heard > now => {
                *heard = now;
                false
            }
            Some(Heard::At(heard)) => now.saturating_duration_since(*heard) > UNHEARD,
        }
    }

    pub(super) fn pass_over_first(&mut self, now: Instant) {
        if let Some((number, waiting)) = self.order.pop_first() {
            let client = waiting.place.owner.client;
            self.heard.insert(client, Heard::PassedOver(now));
            self.passed_over.insert(number, waiting);
        }
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, place: &Place) -> bool {
        let number = self.numbers.remove(place);
        if let Some(number) = number {
            self.order.remove(&number);
            self.passed_over.remove(&number);
        }
        if self.numbers.is_empty() {
            self.heard.clear();
        }
        number.is_some()
    }
}
