//! The state at one moment.

use std::hash::{Hash, Hasher};

use super::client::{Client, Message};
use super::store::Verb;

/// The owner token of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) client: u8,
    pub(super) attempt: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelHold {
    pub(super) owner: Owner,
    pub(super) left: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(super) lock: Option<ModelHold>,
    pub(super) queue: Vec<Owner>,
    /// Suspended places: their clients are not heard.
    pub(super) suspended: Vec<Owner>,
    /// Places that may be suspended: the store has not heard their clients since.
    pub(super) unheard: Vec<Owner>,
    pub(super) clients: Vec<Client>,
    pub(super) faults: u8,
    /// The owners that joined the queue and did not get their turn yet, in order. Recorded from the
    /// events, not from the queue.
    pub(super) arrived: Vec<Owner>,
    /// An owner got the lock before a live waiter that came earlier.
    pub(super) overtaken: bool,
    /// An owner ended another owner's hold.
    pub(super) ended_by_another: bool,
    /// A stray acquire was carried out after the engine counted it as lost.
    pub(super) astray: bool,
}

impl State {
    /// Removes a place from the queue.
    pub(super) fn vacate(&mut self, owner: Owner) {
        self.queue.retain(|place| *place != owner);
        self.suspended.retain(|place| *place != owner);
        self.unheard.retain(|place| *place != owner);
    }

    /// A grant that is over is still announced to a waiter.
    pub(super) fn has_stale_grant(&self) -> bool {
        (0..).zip(&self.clients).any(|(at, client)| {
            client.inbound.iter().any(|message| match *message {
                Message::Grant { attempt, .. } => {
                    let owner = Owner {
                        client: at,
                        attempt,
                    };
                    client.waits_as(attempt) && self.lock.is_none_or(|hold| hold.owner != owner)
                }
                Message::Reply { .. } => false,
            })
        })
    }

    /// The holder has given up, and its undo is not carried out yet.
    pub(super) fn has_grant_to_undo(&self) -> bool {
        self.lock.is_some_and(|hold| {
            let client = &self.clients[usize::from(hold.owner.client)];
            client.alive
                && client
                    .jobs
                    .iter()
                    .any(|job| job.verb == Verb::Abandon && job.attempt == hold.owner.attempt)
        })
    }

    /// Once all that is under way has ended, no live process has a hold or a place.
    pub(super) fn is_clean(&self) -> bool {
        let leaves = |owner: &Owner| self.clients[usize::from(owner.client)].alive;
        !self.clients.iter().all(Client::rests)
            || self.astray
            || !self.queue.iter().any(leaves) && self.lock.is_none_or(|hold| !leaves(&hold.owner))
    }
}

/// Equal clients are interchangeable: states that differ only in their order count as one.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut order: Vec<usize> = (0..self.clients.len()).collect();
        order.sort_by_key(|at| &self.clients[*at]);
        let name = |owner: &Owner| {
            let at = usize::from(owner.client);
            let name = order.iter().position(|other| *other == at);
            (name, owner.attempt)
        };
        let names = |owners: &[Owner]| owners.iter().map(name).collect::<Vec<_>>();
        order.iter().for_each(|at| self.clients[*at].hash(hasher));
        let lock = self.lock.map(|hold| (name(&hold.owner), hold.left));
        (lock, names(&self.queue), names(&self.arrived)).hash(hasher);
        (names(&self.suspended), names(&self.unheard)).hash(hasher);
        let notes = (self.overtaken, self.ended_by_another, self.astray);
        (self.faults, notes).hash(hasher);
    }
}
