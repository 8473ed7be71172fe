//! [`Intruder`]: takes locks out of their holders' hands, for tests.

use std::time::Duration;

use super::client::MemoryClient;
use super::server::MemoryStore;
use crate::{Claim, ClientId, Clock, LockKey, Release};

/// Longer than any test, and than any clock that a test advances.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Somebody who takes and frees locks at once, past the queue and whoever has them.
#[derive(Debug)]
pub struct Intruder(MemoryClient);

impl MemoryStore {
    /// An intruder among the clients of this server.
    #[must_use]
    pub fn intruder(&self, namespace: &str, client: ClientId, clock: Clock) -> Intruder {
        Intruder(self.client(namespace, client, clock))
    }
}

impl Intruder {
    /// Takes the key for this owner, whoever has it now.
    pub fn take(&self, claim: &Claim) {
        self.0.with(&claim.key, |step, lock| {
            lock.holders.clear();
            let ends = step.now + FOR_EVER;
            lock.holders.enter(claim.owner, claim.permits, ends);
        });
    }

    /// Ends that hold, unless it was taken away meanwhile.
    pub fn give_back(&self, claim: &Claim) {
        let release = Release {
            claim: claim.clone(),
            keep: Duration::ZERO,
        };
        self.0
            .with(&claim.key, |step, lock| lock.release(step, &release));
    }

    /// Takes the key away from whoever has it. The first in the queue gets it.
    pub fn free(&self, key: &LockKey) {
        self.0.with(key, |step, lock| {
            lock.holders.clear();
            lock.hand_over(step, None);
        });
    }
}
