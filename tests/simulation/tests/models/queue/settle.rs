//! From any state, without further faults, every waiter gets the lock.

use super::client::Phase;
use super::{Action, Queue, State};

/// What happens to commands whose connection broke.
#[derive(Clone, Copy)]
enum Strays {
    Arrive,
    Vanish,
}

impl Queue {
    /// Whether every waiter gets the lock soon if nothing more goes wrong: what is under way
    /// arrives, holders release, and no new request is made. "Soon" is the longest lease that a
    /// dead process can have left, and for each place of a dead process the first lease of a grant
    /// that is not picked up. A look finds out each of these.
    pub(super) fn settles(&self, state: &State) -> bool {
        if !state
            .clients
            .iter()
            .any(|client| client.alive && client.waits())
        {
            return true;
        }
        let stray = state.clients.iter().any(|client| !client.stray.is_empty());
        self.settles_if(state, Strays::Vanish) && (!stray || self.settles_if(state, Strays::Arrive))
    }

    fn settles_if(&self, state: &State, strays: Strays) -> bool {
        let mut state = state.clone();
        state.faults = 0;
        let mut waiting: Vec<bool> = state
            .clients
            .iter()
            .map(|client| client.alive && client.waits())
            .collect();
        let places = u8::try_from(state.queue.len()).unwrap_or(u8::MAX);
        let mut ticks = self.lease + self.poll + places * (self.first_lease + self.poll);
        let mut actions = Vec::new();
        while waiting.contains(&true) {
            actions.clear();
            (0..)
                .zip(&state.clients)
                .for_each(|(at, _)| self.steps_of(&state, at, &mut actions));
            let prompt = actions.iter().copied().find(|action| match action {
                Action::CarryOutStray(..) => matches!(strays, Strays::Arrive),
                Action::LoseStray(..) => matches!(strays, Strays::Vanish),
                Action::Start(_) | Action::Renew(_) | Action::Work(..) => false,
                _ => true,
            });
            // Undos that must be repeated are repeated with the clock.
            let works = actions
                .iter()
                .copied()
                .filter(|action| matches!(action, Action::Work(..)));
            match prompt {
                Some(action) => self.step(&mut state, action),
                None if ticks == 0 => return false,
                None => {
                    ticks -= 1;
                    let works: Vec<_> = works.collect();
                    works
                        .into_iter()
                        .for_each(|work| self.step(&mut state, work));
                    self.step(&mut state, Action::Tick);
                }
            }
            for (waits, client) in waiting.iter_mut().zip(&state.clients) {
                *waits &= !matches!(client.phase, Phase::Holding { .. });
            }
        }
        true
    }
}
