//! One key, and what one step sees of the server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Weak;

use super::SharedName;
use super::latch::Latches;
use super::queue::Places;
use crate::instant::Instant;
use crate::rules::{Holders, LockRecord, Waiting, next_token};
use crate::{Acquire, ClientId, HandedOver, Link, Listener, Owner, Trust, WakeUp};

/// There is only one connection to the server.
pub(super) const LINK: Link = Link(0);

/// The holders of one key, its waiters, and the last fencing token.
#[derive(Debug, Default)]
pub(super) struct MemoryLock {
    pub(super) holders: Holders,
    pub(super) queue: Places,
    pub(super) last_token: u64,
}

/// What one operation sees of the server besides its lock.
pub(super) struct MemoryStep<'s> {
    pub(super) now: Instant,
    pub(super) micros: u64,
    pub(super) latches: &'s Latches,
    pub(super) listeners: &'s BTreeMap<ClientId, ConnectedClient>,
    pub(super) wake_ups: Vec<WakeUp>,
}

/// A lock during a step.
pub(super) struct MemoryRecord<'r, 's> {
    pub(super) step: &'r mut MemoryStep<'s>,
    pub(super) lock: &'r mut MemoryLock,
    /// The name of its key, if there are latches at all.
    pub(super) name: Option<SharedName>,
}

impl MemoryStep<'_> {
    fn listener(&self, owner: Owner) -> Option<Arc<dyn Listener>> {
        let client = self.listeners.get(&owner.client);
        client.and_then(ConnectedClient::listener)
    }
}

impl MemoryLock {
    /// True if forgetting the lock changes nothing. A token below the server's time need not be
    /// remembered.
    pub(super) fn is_idle(&self, now: Instant, micros: u64) -> bool {
        self.holders.live(now) == 0 && self.queue.len() == 0 && self.last_token < micros
    }
}

impl LockRecord for MemoryRecord<'_, '_> {
    type Place = Owner;
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.step.now
    }

    fn holders(&mut self) -> &mut Holders {
        &mut self.lock.holders
    }

    fn is_latch(&mut self) -> Result<bool, Infallible> {
        let Self { step, name, .. } = self;
        Ok(name
            .as_ref()
            .is_some_and(|name| step.latches.has(name, step.now)))
    }

    fn mint(&mut self, tokens: u32) -> Result<u64, Infallible> {
        let first = next_token(self.lock.last_token, self.step.micros);
        self.lock.last_token = first + u64::from(tokens) - 1;
        Ok(first)
    }

    fn first(&mut self) -> Result<Option<(Owner, Waiting)>, Infallible> {
        let first = self.lock.queue.first(self.step.now);
        Ok(first.map(|waiting| (waiting.owner, waiting)))
    }

    fn is_of(&self, place: &Owner, request: &Acquire) -> bool {
        *place == request.claim.owner
    }

    fn listens(&mut self, place: &Owner) -> Result<bool, Infallible> {
        Ok(self.step.listener(*place).is_some())
    }

    fn notify(&mut self, place: &Owner, token: Option<u64>) {
        if let Some(listener) = self.step.listener(*place) {
            let granted = HandedOver::new(*place, token, Trust::Order(LINK));
            self.step.wake_ups.push(listener.on_granted(granted));
        }
    }

    fn suspend(&mut self, _first: &Owner) -> Result<(), Infallible> {
        self.lock.queue.suspend_first(self.step.now);
        Ok(())
    }

    fn remove(&mut self, place: &Owner) -> Result<(), Infallible> {
        self.lock.queue.remove(*place);
        Ok(())
    }

    fn is_queued(&mut self, request: &Acquire) -> Result<bool, Infallible> {
        Ok(self.lock.queue.contains(request.claim.owner))
    }

    fn join(&mut self, request: &Acquire) -> Result<(), Infallible> {
        let waiting = Waiting::of(request, self.step.now);
        self.lock.queue.join(waiting);
        Ok(())
    }

    fn hear(&mut self, request: &Acquire) -> Result<(), Infallible> {
        let client = request.claim.owner.client;
        self.lock.queue.hear(client, self.step.now);
        Ok(())
    }

    fn leave(&mut self, request: &Acquire) -> Result<(), Infallible> {
        self.remove(&request.claim.owner)
    }

    fn forget_one(&mut self) -> Result<(), Infallible> {
        self.lock.queue.forget_one(self.step.now);
        Ok(())
    }

    fn places(&mut self) -> Result<usize, Infallible> {
        Ok(self.lock.queue.len())
    }
}

#[derive(Debug)]
pub(super) struct ConnectedClient {
    /// The client's own namespace.
    pub(super) namespace: Arc<str>,
    pub(super) listener: Weak<dyn Listener>,
}

impl ConnectedClient {
    pub(super) fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.listener.upgrade()
    }
}
