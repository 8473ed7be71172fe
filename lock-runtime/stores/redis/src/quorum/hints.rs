//! Messages that a lock is free: when to believe them, and who tries first.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lock_store::{Clock, Ended, Link, Listener, Owner, WakeUp};

use super::{chance, majority};

/// About what a round takes: so far apart are those who try.
const SLOT: Duration = Duration::from_millis(2);
/// No more slots than this are waited for, however many are told.
const SLOTS: u32 = 32;
/// So many holds whose end not every server has told of are remembered.
const REMEMBERED: usize = 1024;

/// What the servers have told.
#[derive(Debug)]
pub(super) struct Hints {
    servers: usize,
    listener: Weak<dyn Listener>,
    clock: Clock,
    /// Of which hold, by which servers.
    told: Mutex<HashMap<Owner, BTreeSet<usize>>>,
}

/// What listens to one server.
#[derive(Debug)]
pub(super) struct Ear {
    at: usize,
    hints: Arc<Hints>,
}

impl Hints {
    pub(super) fn new(servers: usize, listener: Weak<dyn Listener>, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            servers,
            listener,
            clock,
            told: Mutex::default(),
        })
    }

    /// Whether just now a majority of the servers has told of it.
    fn is_free(&self, at: usize, owner: Owner) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= REMEMBERED {
            told.clear();
        }
        let by = told.entry(owner).or_default();
        let free = by.insert(at) && by.len() == majority(self.servers);
        if by.len() == self.servers {
            told.remove(&owner);
        }
        free
    }
}

impl Ear {
    pub(super) fn new(at: usize, hints: &Arc<Hints>) -> Self {
        let hints = Arc::clone(hints);
        Self { at, hints }
    }
}

impl Listener for Ear {
    fn granted(&self, _: Link, _: Owner, _: Option<u64>) -> WakeUp {
        // No single server can grant the lock.
        WakeUp::default()
    }

    fn recheck(&self) {
        if let Some(listener) = self.hints.listener.upgrade() {
            listener.recheck();
        }
    }

    fn freed(&self, ended: Ended) {
        let hints = &self.hints;
        if !hints.is_free(self.at, ended.owner) {
            return;
        }
        // If all tried at once, they would split the votes.
        let slots = ended.told.clamp(1, SLOTS);
        let slot = chance(SLOT * slots).as_micros() / SLOT.as_micros();
        let wait = SLOT * u32::try_from(slot).unwrap_or(0);
        let (clock, listener) = (hints.clock.clone(), Weak::clone(&hints.listener));
        hints.clock.spawn(async move {
            if !wait.is_zero() {
                clock.sleep_until(clock.now() + wait).await;
            }
            if let Some(listener) = listener.upgrade() {
                listener.freed(ended);
            }
        });
    }
}
