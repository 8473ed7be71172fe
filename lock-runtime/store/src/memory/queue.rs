//! The wait queue of one lock.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::{Owner, Permits};

/// The queue: first come, first served, and a place is found by its owner.
#[derive(Debug, Default)]
pub(super) struct Places {
    order: BTreeMap<u64, Place>,
    numbers: HashMap<Owner, u64, RandomState>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) owner: Owner,
    pub(super) permits: Option<Permits>,
    pub(super) first_lease: Duration,
    pub(super) tokens: u32,
}

impl Places {
    pub(super) fn contains(&self, owner: Owner) -> bool {
        self.numbers.contains_key(&owner)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn first(&self) -> Option<Place> {
        self.order.first_key_value().map(|(_, place)| *place)
    }

    pub(super) fn join(&mut self, place: Place) {
        if !self.numbers.contains_key(&place.owner) {
            let number = self.order.last_key_value().map_or(1, |(last, _)| last + 1);
            self.numbers.insert(place.owner, number);
            self.order.insert(number, place);
        }
    }

    pub(super) fn remove(&mut self, owner: Owner) {
        if let Some(number) = self.numbers.remove(&owner) {
            self.order.remove(&number);
        }
    }
}
