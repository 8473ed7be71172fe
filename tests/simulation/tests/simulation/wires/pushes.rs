//! What a server tells a client unasked.

use std::sync::Weak;
use std::time::Duration;

use lock_store::{HandedOver, Link, Listener, Owner, Trust, WakeUp};

use super::{Wire, Wires, id};
use crate::couriers::Parcel;
use crate::world::now;

/// One client's listener at the server.
#[derive(Debug)]
pub(crate) struct Told(pub(crate) Weak<Wires>);

impl Listener for Told {
    fn on_granted(&self, grant: HandedOver) -> WakeUp {
        let (owner, token) = (grant.owner, grant.token);
        if let Some(wires) = self.0.upgrade() {
            wires.push(owner, token);
        }
        WakeUp::default()
    }

    /// The wires decide what a restart of the server looks like.
    fn recheck(&self) {}
}

impl Wires {
    /// Tells this client of a grant.
    pub(crate) fn push(&self, owner: Owner, token: Option<u64>) {
        let faults = &self.world.faults;
        let mut state = self.state();
        let (from, to) = faults.delay;
        let delay = state.rng.ms(from..=to);
        let lost = state.rng.chance(faults.lost_grant) && !self.world.is_calm();
        let lost = lost || self.server().keeps_to_itself();
        let Some(wire) = &state.wire else { return };
        self.world
            .note(format_args!("c{} push {owner:?} lost={lost}", self.client));
        if lost {
            self.world.counts.add("lost grants");
            return;
        }
        let wrong = self.server().wrong();
        let token = wrong.token(token);
        if let Some(second) = wrong.second(owner) {
            let at = self.world.all_wires().into_iter();
            let at = at.filter(|other| other.number == self.number);
            for other in at.filter(|other| other.is_of(second) && other.client != self.client) {
                other.notify(second, token, delay);
            }
        }
        self.put(wire, Link(state.link), owner, token, delay);
    }

    /// Whether the owner belongs to this client.
    fn is_of(&self, owner: Owner) -> bool {
        owner.client == id(self.client)
    }

    fn notify(&self, owner: Owner, token: Option<u64>, delay: Duration) {
        let state = self.state();
        if let Some(wire) = &state.wire {
            self.put(wire, Link(state.link), owner, token, delay);
        }
    }

    fn put(&self, wire: &Wire, link: Link, owner: Owner, token: Option<u64>, delay: Duration) {
        let lines = Weak::clone(&self.lines);
        let deliver = move || {
            if let Some(lines) = lines.upgrade() {
                drop(lines.on_granted(HandedOver::new(owner, token, Trust::Order(link))));
            }
        };
        let _ = wire.to_client.send(Parcel {
            at: now() + delay,
            deliver: Box::new(deliver),
        });
    }
}
