//! The steps of the store, of a client and of the resource.

use super::{Client, Fence, Grant, Mistake, Phase, State, Stray, Verb, Way};

impl Fence {
    pub(super) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn trusted(&self) -> u8 {
        self.lease - u8::from(!self.makes(Mistake::NoMargin))
    }

    /// `mint` and `keep_tokens` in `tokens.lua`.
    pub(super) fn mint(&self, state: &mut State) -> Grant {
        let floor = if self.makes(Mistake::TokenByPlainIncrement) {
            0
        } else {
            state.now
        };
        let token = floor.max(state.last + 1);
        state.disorder |= token <= state.highest;
        state.last = token;
        state.highest = state.highest.max(token);
        state.pass_time();
        state.grants += 1;
        Grant {
            token,
            number: state.grants,
        }
    }

    /// The store carries out an acquire of this attempt.
    pub(super) fn acquire(&self, state: &mut State, at: usize, attempt: u8) -> Way {
        if state
            .lock
            .is_some_and(|(client, of, _)| (client, of) != (at, attempt))
        {
            return Way::Busy;
        }
        state.lock = Some((at, attempt, self.lease));
        Way::Granted(self.mint(state))
    }

    /// True if the hold was renewed.
    pub(super) fn renew(&self, state: &mut State, at: usize, attempt: u8) -> bool {
        let holds = state.holds(at, attempt) || self.makes(Mistake::RenewalBySet);
        if holds {
            state.lock = Some((at, attempt, self.lease));
        }
        holds
    }

    pub(super) fn carry_out(&self, state: &mut State, at: usize) {
        let client = &state.clients[at];
        let (attempt, command) = (client.attempt, client.command);
        state.clients[at].command = match command {
            Some(Way::Acquire) => Some(self.acquire(state, at, attempt)),
            Some(Way::Renew { left }) => Some(Way::Renewed {
                left,
                gone: !self.renew(state, at, attempt),
            }),
            other => other,
        };
    }

    pub(super) fn carry_out_stray(&self, state: &mut State, at: usize, stray: usize) {
        let Stray { attempt, verb } = state.clients[at].strays.remove(stray);
        match verb {
            Verb::Acquire => _ = self.acquire(state, at, attempt),
            Verb::Renew => _ = self.renew(state, at, attempt),
            Verb::Release if state.holds(at, attempt) => state.lock = None,
            Verb::Release => {}
        }
    }

    pub(super) fn hear(&self, client: &mut Client) {
        match (client.command.take(), client.phase) {
            (Some(Way::Granted(grant)), Phase::Asking { left }) => {
                let left = if self.makes(Mistake::ValidityFromTheReply) {
                    self.trusted()
                } else {
                    left.max(u8::from(self.makes(Mistake::ReplyTrustedAfterItsDeadline)))
                };
                if left > 0 {
                    client.phase = Phase::Holding { left, grant };
                } else {
                    client.end();
                }
            }
            (Some(Way::Renewed { left: more, gone }), Phase::Holding { left, grant }) => {
                client.phase = if gone {
                    Phase::Idle
                } else {
                    Phase::Holding {
                        left: left.max(more),
                        grant,
                    }
                };
            }
            _ => client.phase = Phase::Idle,
        }
    }

    pub(super) fn no_reply(&self, client: &mut Client) {
        match client.command.take() {
            Some(Way::Acquire) => {
                client.stray(Verb::Acquire);
                client.end();
            }
            Some(Way::Granted(_) | Way::Busy) => client.end(),
            Some(Way::Renew { .. }) => {
                client.stray(Verb::Renew);
                if let Phase::Holding { left, .. } = &mut client.phase
                    && self.makes(Mistake::LostRenewalTrusted)
                {
                    *left = self.trusted();
                }
            }
            Some(Way::Renewed { .. }) | None => {}
        }
    }

    pub(super) fn arrive(&self, state: &mut State, write: usize) {
        let (write, resource) = (state.writes.remove(write), &mut state.resource);
        let stale = write.number < resource.highest.number;
        resource.stale_arrived |= stale;
        if write.token >= resource.highest.token || self.makes(Mistake::ResourceChecksNothing) {
            resource.stale_accepted |= stale;
            resource.highest = resource.highest.max(write);
        }
    }
}

impl State {
    pub(super) fn holds(&self, at: usize, attempt: u8) -> bool {
        self.lock
            .is_some_and(|(client, of, _)| (client, of) == (at, attempt))
    }

    pub(super) fn believing(&self) -> usize {
        let believe = |client: &&Client| matches!(client.phase, Phase::Holding { .. });
        self.clients.iter().filter(believe).count()
    }

    pub(super) fn pass_time(&mut self) {
        self.now = (self.now + 1).min(self.highest + 1);
    }

    /// The store's clock ticks.
    pub(super) fn store_tick(&mut self) {
        self.pass_time();
        self.lock = self
            .lock
            .filter(|(_, _, left)| *left > 1)
            .map(|(client, attempt, left)| (client, attempt, left - 1));
    }
}

impl Client {
    pub(super) fn stray(&mut self, verb: Verb) {
        let attempt = self.attempt;
        self.strays.push(Stray { attempt, verb });
        // They are carried out in any order.
        self.strays.sort_unstable();
    }

    /// A release or an undo, sent in the background.
    pub(super) fn end(&mut self) {
        if let Some(Way::Renew { .. }) = self.command.take() {
            self.stray(Verb::Renew);
        }
        self.phase = Phase::Idle;
        self.stray(Verb::Release);
    }

    pub(super) fn tick(&mut self) {
        if let Some(Way::Renew { left } | Way::Renewed { left, .. }) = &mut self.command {
            *left = left.saturating_sub(1);
        }
        match &mut self.phase {
            Phase::Idle => {}
            Phase::Asking { left } => *left = left.saturating_sub(1),
            Phase::Holding { left: 1, .. } => self.end(),
            Phase::Holding { left, .. } => *left -= 1,
        }
    }
}
