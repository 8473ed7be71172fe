//! [`RequestNumbers`]: what tells the requests of a client apart, also those of a client that was
//! cloned with its machine.

use std::sync::atomic::{AtomicU64, Ordering};

use lock_store::{ClientId, Owner};

/// A number is a count below and something random above it.
const COUNT: u64 = u32::MAX as u64;

/// Numbers the requests of a client.
///
/// A virtual machine that goes on from a snapshot has the client's id and count from there, and so
/// would any other one from the same snapshot: their owner tokens would be the same. Each of them
/// has to connect anew, and goes on with other numbers.
#[derive(Debug)]
pub(crate) struct RequestNumbers {
    client: ClientId,
    next: AtomicU64,
    draws: bool,
}

impl RequestNumbers {
    /// Without `draws`, nothing is random.
    pub(crate) fn new(client: ClientId, draws: bool) -> Self {
        Self {
            client,
            next: AtomicU64::new(0),
            draws,
        }
    }

    pub(super) fn client(&self) -> ClientId {
        self.client
    }

    pub(super) fn next_owner(&self) -> Owner {
        Owner {
            client: self.client,
            request: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Goes on with numbers that no other process can have in common.
    pub(super) fn draw(&self) {
        if !self.draws {
            return;
        }
        match getrandom::u32() {
            Ok(random) => {
                let above = u64::from(random) << u32::BITS;
                let drawn = |next| Some(above | next & COUNT);
                let _ = self
                    .next
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, drawn);
            }
            Err(error) => tracing::warn!(%error, "the operating system gives no random numbers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(draws: bool) -> RequestNumbers {
        RequestNumbers::new(ClientId(7), draws)
    }

    #[test]
    fn two_clones_of_a_client_go_on_with_different_numbers_after_their_next_connection() {
        let clones = [numbers(true), numbers(true)];
        let next = || clones.each_ref().map(|one| one.next_owner().request);
        assert_eq!(next(), [0, 0]);
        clones.iter().for_each(RequestNumbers::draw);
        let [one, other] = next();
        assert_ne!(one, other);
        // They count on: the same draw twice makes no number a second time.
        assert_eq!([one & COUNT, other & COUNT], [1, 1]);
        assert_eq!(next(), [one + 1, other + 1]);
        assert_eq!(clones[0].next_owner().client, ClientId(7));
    }

    #[test]
    fn in_a_simulation_nothing_is_drawn() {
        let numbers = numbers(false);
        numbers.draw();
        assert_eq!(numbers.next_owner().request, 0);
    }
}
