//! [`Intruder`]: takes locks away from their holders, for tests.

use std::time::Duration;

use super::client::MemoryClient;
use super::server::MemoryStore;
use crate::rules::{self, LockRecord as _};
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
        self.0.with(&claim.key, |record| {
            let ends = record.now() + FOR_EVER;
            record.holders().clear();
            record.holders().enter(claim.owner, claim.permits, ends);
            Ok(())
        });
    }

    /// Ends that hold, unless it was taken away meanwhile.
    pub fn give_back(&self, claim: &Claim) {
        let end = Release::new(claim.clone(), Duration::ZERO);
        self.0
            .with(&claim.key, |record| rules::release(record, &end));
    }

    /// Takes the key away from every holder. The first in the queue gets it. True if it was held.
    pub fn free(&self, key: &LockKey) -> bool {
        self.0.with(key, |record| {
            let was_held = !record.holders().is_empty();
            record.holders().clear();
            rules::hand_over(record, None).map(|_| was_held)
        })
    }
}
