//! Messages that a lock is free: when to believe them, and which client tries first.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{
    ClientMessage, Clock, Ended, HandedOver, Listener, Mutex, Owner, StoreError, WakeUp,
};

use super::majority::majority;
use crate::names::Prefix;
use crate::random;

/// The distance between clients' attempts: about the time of a round.
const SLOT: Duration = Duration::from_millis(2);
/// The maximum number of slots, however many clients hear the message.
const SLOTS: u32 = 32;
/// The number of holds to remember whose end only some servers have reported.
const REMEMBERED: usize = 1024;

/// The ends of holds that servers have reported.
#[derive(Debug)]
pub(super) struct Hints {
    servers: usize,
    listener: Weak<dyn Listener>,
    clock: Clock,
    namespace: Prefix,
    /// For each hold, the servers that have reported its end.
    told: Mutex<HashMap<Owner, BTreeSet<usize>>>,
}

#[derive(Debug)]
pub(super) struct ServerListener {
    at: usize,
    hints: Arc<Hints>,
}

impl Hints {
    pub(super) fn new(
        servers: usize,
        listener: Weak<dyn Listener>,
        clock: Clock,
        namespace: &Prefix,
    ) -> Arc<Self> {
        Arc::new(Self {
            servers,
            listener,
            clock,
            namespace: namespace.clone(),
            told: Mutex::default(),
        })
    }

    /// True once: when this server's message completes a majority.
    fn is_free(&self, at: usize, owner: Owner) -> bool {
        let mut told = self.told.lock();
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

impl ServerListener {
    pub(super) fn new(at: usize, hints: &Arc<Hints>) -> Self {
        let hints = Arc::clone(hints);
        Self { at, hints }
    }
}

impl Listener for ServerListener {
    fn on_granted(&self, _: HandedOver) -> WakeUp {
        // No single server can grant the lock.
        WakeUp::default()
    }

    fn recheck(&self) {
        self.hints.listener.recheck();
    }

    fn on_connected(&self, server: &str) {
        self.hints.listener.on_connected(server);
    }

    fn on_disconnected(&self, server: &str, error: &StoreError) {
        self.hints.listener.on_disconnected(server, error);
    }

    fn on_message(&self, message: ClientMessage) {
        self.hints.listener.on_message(message);
    }

    fn on_freed(&self, mut ended: Ended) {
        let hints = &self.hints;
        if !hints.is_free(self.at, ended.owner) {
            return;
        }
        // Clients that all try at once split the votes.
        let slots = ended.told.clamp(1, SLOTS);
        let slot = random::below(SLOT * slots).as_micros() / SLOT.as_micros();
        let wait = SLOT * u32::try_from(slot).unwrap_or(0);
        ended.key = hints.namespace.own(ended.key);
        let (clock, listener) = (hints.clock.clone(), Weak::clone(&hints.listener));
        hints.clock.spawn(async move {
            if !wait.is_zero() {
                clock.sleep_until(clock.now() + wait).await;
            }
            listener.on_freed(ended);
        });
    }
}
