//! [`RequestNumbers`]: what tells the requests of a client apart, also those of a client that was
//! cloned with its machine, and what nobody else can guess.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use lock_store::{ClientId, Owner};

/// A number before it is made secret is a count below and something random above it.
const COUNT: u64 = u32::MAX as u64;
/// The bits of the count that stay in the number and keep numbers apart.
const SHOWN: u64 = (1 << 24) - 1;

/// Numbers the requests of a client.
///
/// A virtual machine that goes on from a snapshot has the client's id and count from there, and so
/// would any other one from the same snapshot: their owner tokens would be the same. Each of them
/// has to connect anew, and goes on with other numbers.
///
/// 40 bits of a number are secret, so the number is also the nonce of the request: the store keeps
/// it in the place of the queue and repeats it in the message of a grant. A user who may only
/// publish can't guess it, and so can't make a waiter believe in a grant. When the lock is held,
/// the number is no secret any more, and nobody waits for it.
pub(crate) struct RequestNumbers {
    client: ClientId,
    next: AtomicU64,
    /// SipHash with keys of the operating system's.
    secret: Option<RandomState>,
}

impl RequestNumbers {
    /// Without `draws`, nothing is random, and nothing is secret.
    pub(crate) fn new(client: ClientId, draws: bool) -> Self {
        Self {
            client,
            next: AtomicU64::new(0),
            secret: draws.then(RandomState::new),
        }
    }

    pub(super) fn client(&self) -> ClientId {
        self.client
    }

    pub(super) fn next_owner(&self) -> Owner {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let secret = self.secret.as_ref();
        Owner::new(
            self.client,
            secret.map_or(next, |it| it.hash_one(next) & !SHOWN | next & SHOWN),
        )
    }

    /// Goes on with numbers that no other process can have in common.
    pub(super) fn draw(&self) {
        if self.secret.is_none() {
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

// Without the secret.
lock_store::show!(RequestNumbers as it: client = it.client);

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(draws: bool) -> RequestNumbers {
        RequestNumbers::new(ClientId(7), draws)
    }

    impl RequestNumbers {
        /// Those of a copy of the process.
        pub(in crate::engine) fn copied(&self) -> Self {
            Self {
                client: self.client,
                next: AtomicU64::new(self.next.load(Ordering::Relaxed)),
                secret: self.secret.clone(),
            }
        }
    }

    #[test]
    fn two_clones_of_a_client_go_on_with_different_numbers_after_their_next_connection() {
        let original = numbers(true);
        let copy = original.copied();
        let clones = [original, copy];
        let next = || clones.each_ref().map(|one| one.next_owner().request);
        let [one, other] = next();
        assert_eq!(one, other);
        clones.iter().for_each(RequestNumbers::draw);
        let [one, other] = next();
        assert_ne!(one, other);
        // They count on: the same draw twice makes no number a second time.
        assert_eq!([one & SHOWN, other & SHOWN], [1, 1]);
        assert_eq!(next().map(|next| next & SHOWN), [2, 2]);
        assert_eq!(clones[0].next_owner().client, ClientId(7));
    }

    #[test]
    fn a_number_tells_nothing_of_the_next() {
        let clients = [numbers(true), numbers(true)];
        let next = || clients.each_ref().map(|one| one.next_owner().request);
        for count in 0..100 {
            let [one, other] = next();
            assert_eq!([one & SHOWN, other & SHOWN], [count; 2]);
            // Not even another client that has counted as far can tell.
            assert_ne!(one & !SHOWN, other & !SHOWN);
        }
    }

    #[test]
    fn in_a_simulation_nothing_is_drawn() {
        let numbers = numbers(false);
        numbers.draw();
        assert_eq!(numbers.next_owner().request, 0);
    }
}
