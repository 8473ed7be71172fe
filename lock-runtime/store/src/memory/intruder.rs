//! [`Intruder`]: takes locks away from their holders, for tests.

use std::time::Duration;

use super::client::MemoryClient;
use super::server::MemoryStore;
use crate::{Claim, ClientId, Clock, LockKey, Release};

/// Longer than any test, and than the time that any test skips.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Takes and frees locks at once, regardless of the queue and the holders.
#[derive(Debug)]
pub struct Intruder(MemoryClient);

impl MemoryStore {
    /// Adds an intruder to the clients of this server.
    #[must_use]
    pub fn intruder(&self, namespace: &str, client: ClientId, clock: Clock) -> Intruder {
        Intruder(self.client(namespace, client, clock))
    }
}

impl Intruder {
    /// Takes the key for this owner, whatever its present holder.
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

    /// Takes the key away from every holder. The first in the queue gets it.
    pub fn free(&self, key: &LockKey) {
        self.0.with(key, |step, lock| {
            lock.holders.clear();
            lock.hand_over(step, None);
        });
    }
}
