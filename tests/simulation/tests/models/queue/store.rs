//! What the store does with one command: `acquire.lua`, `renew.lua`, `release.lua`, `abandon.lua`
//! and `hand_over` in `lib.lua`, for an exclusive lock.

use super::{Mistake, Mode, ModelHold, Owner, Queue, State};

/// A client's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Verb {
    Acquire(Mode),
    Renew,
    Release,
    Abandon,
}

/// The store's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Reply {
    Granted,
    Busy {
        queued: bool,
    },
    Renewed,
    Gone,
    /// The hold was ended, or there was none.
    Done {
        held: bool,
    },
}

impl Queue {
    /// Carries out a command of `owner`. Sends the grants that result to their clients.
    pub(super) fn carry_out(&self, state: &mut State, owner: Owner, verb: Verb) -> Reply {
        match verb {
            Verb::Acquire(mode) => self.acquire(state, owner, mode),
            Verb::Renew => match &mut state.lock {
                Some(hold) if hold.owner == owner => {
                    hold.left = hold.left.max(self.lease);
                    Reply::Renewed
                }
                _ => Reply::Gone,
            },
            Verb::Release => {
                let unchecked = self.makes(Mistake::ReleaseWithoutOwnerCheck);
                let held = self.free(state, owner, unchecked);
                self.hand_over(state, None);
                Reply::Done { held }
            }
            Verb::Abandon => {
                state.vacate(owner);
                state.arrived.retain(|place| *place != owner);
                let held =
                    !self.makes(Mistake::AbandonLeavesTheGrant) && self.free(state, owner, false);
                self.hand_over(state, None);
                Reply::Done { held }
            }
        }
    }

    fn acquire(&self, state: &mut State, owner: Owner, mode: Mode) -> Reply {
        if mode == Mode::Join && state.queue.contains(&owner) {
            state.unheard.retain(|place| place.client != owner.client);
            if !self.makes(Mistake::SuspendedForEver) {
                state.suspended.clone_from(&state.unheard);
            }
        }
        let mine = match &state.lock {
            // The plain `SET … NX` refuses also its own token.
            Some(hold) => hold.owner == owner && mode != Mode::Barge,
            None if mode == Mode::Barge || self.makes(Mistake::LookingAgainBarges) => true,
            None => self.hand_over(state, Some(owner)) && state.lock.is_none(),
        };
        if mine {
            match &mut state.lock {
                // A repeat never shortens the owner's hold.
                Some(hold) => hold.left = hold.left.max(self.lease),
                // A first try by `SET … NX` may overtake the waiters. `fair` rules that out.
                None => self.grant(state, owner, self.lease, mode != Mode::Barge),
            }
            state.vacate(owner);
            return Reply::Granted;
        }
        if mode == Mode::Join && !state.queue.contains(&owner) {
            state.queue.push(owner);
            state.arrived.push(owner);
        }
        Reply::Busy {
            queued: state.queue.contains(&owner),
        }
    }

    /// Ends the owner's hold. Notes it if the hold was another owner's.
    fn free(&self, state: &mut State, owner: Owner, unchecked: bool) -> bool {
        let held = state.lock.filter(|hold| hold.owner == owner || unchecked);
        if let Some(hold) = held {
            state.ended_by_another |= hold.owner != owner;
            state.lock = None;
        }
        held.is_some()
    }

    /// Gives a free lock to the first place whose client listens. True at the end of the queue and
    /// in front of `me`.
    fn hand_over(&self, state: &mut State, me: Option<Owner>) -> bool {
        let turn = |state: &State| {
            let mut places = state.queue.iter();
            places
                .find(|place| !state.suspended.contains(place))
                .copied()
        };
        while let Some(first) = turn(state) {
            if me == Some(first) {
                return true;
            }
            if state.lock.is_some() {
                return false;
            }
            state.vacate(first);
            if state.clients[usize::from(first.client)].listening {
                self.grant(state, first, self.first_lease, true);
                state.clients[usize::from(first.client)].publish_grant(first.attempt);
            } else {
                state.arrived.retain(|place| *place != first);
            }
        }
        true
    }

    /// Stores a hold. Notes it if an earlier owner still waits.
    fn grant(&self, state: &mut State, owner: Owner, left: u8, in_order: bool) {
        let ahead = state
            .arrived
            .iter()
            .take_while(|place| **place != owner)
            .any(|place| {
                let client = &state.clients[usize::from(place.client)];
                let waits = client.listening && client.waits_as(place.attempt);
                waits && !state.unheard.contains(place)
            });
        state.overtaken |= in_order && ahead;
        state.arrived.retain(|place| *place != owner);
        state.lock = Some(ModelHold { owner, left });
    }
}
