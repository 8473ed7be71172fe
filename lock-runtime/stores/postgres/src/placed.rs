//! [`Placed`]: the waiting requests that have a place in the queue.

use std::time::Duration;

use lock_store::{Acquire, Instant, Mutex, Owner, SweepingMap};

/// A request that waits behind others of its process may not ask for long: it is known until it
/// ends. One whose end nobody told is forgotten after this time.
const FORGETS: Duration = Duration::from_secs(600);

/// When each of them was told so last.
#[derive(Default)]
pub(crate) struct Placed(Mutex<SweepingMap<Owner, Instant>>);

impl Placed {
    pub(crate) fn note(&self, owner: Owner, now: Instant) {
        let mut placed = self.0.lock();
        placed.sweep(|last| now < *last + FORGETS);
        placed.insert(owner, now);
    }

    /// It was granted, or ends without.
    pub(crate) fn forget(&self, owner: Owner) {
        self.0.lock().remove(&owner);
    }

    /// In which order requests for one key go: in their own, but first those without a place.
    pub(crate) fn new_first(&self, requests: &[Acquire]) -> Vec<usize> {
        let placed = self.0.lock();
        let has_place = |one: &Acquire| placed.contains_key(&one.claim.owner);
        let mut order: Vec<_> = (0..requests.len()).collect();
        order.sort_by_key(|at| requests.get(*at).is_some_and(has_place));
        order
    }
}

#[cfg(test)]
mod tests {
    use lock_store::{Claim, ClientId};
    use tokio::runtime::Handle;

    use super::*;

    #[tokio::test]
    async fn a_request_that_has_a_place_is_known_until_it_ends_however_seldom_it_asks() {
        let now = lock_store::Clock::new(Handle::current()).now();
        let placed = Placed::default();
        let owner = |number| Owner::new(ClientId(1), number);
        let requests = [1, 2, 3].map(|number| {
            Acquire::new(Claim::new("k".into(), owner(number), None), Duration::ZERO)
        });
        placed.note(owner(1), now);
        // So many others wait that it is looked up who may be forgotten.
        let later = now + Duration::from_secs(120);
        for number in 10..10_000 {
            placed.note(owner(number), later);
        }
        assert_eq!(placed.new_first(&requests), [1, 2, 0]);
        placed.forget(owner(1));
        assert_eq!(placed.new_first(&requests), [0, 1, 2]);
    }
}
