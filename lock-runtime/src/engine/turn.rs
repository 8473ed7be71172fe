//! A process's turn at a key: as long as it lasts, the hold passes from one of its tasks to the next without the store.
//!
//! Lock cohorting (Dice, Marathe and Shavit, "Lock Cohorting: A General Technique for Designing NUMA Locks", PPoPP 2012),
//! with processes for its nodes: a bounded number of local hand-offs, and then the other processes have their turn.

use std::ops::Range;
use std::time::{Duration, Instant};

use lock_store::{Claim, LockKey, Owner, Release};

use super::line::Mark;
use super::time;
use crate::config::{Defaults, Resolved};

/// What the process has in the store, whichever of its tasks uses it.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Whose the key is in the store.
    owner: Owner,
    /// When the process got it from there.
    began: Instant,
    /// How often it has been passed on since.
    passed: u32,
    /// Until when the store has it at the latest, as far as this process has asked for.
    lasts_until: Instant,
    /// Until when the lease of a hand-over by the store reaches, if it was one. The rest of the lease is asked for soon.
    handed_until: Option<Instant>,
    /// Fencing tokens that were reserved with the grant and are not used yet.
    tokens: Range<u64>,
    mark: Mark,
}

/// A hold on its way from one task to the next.
#[derive(Debug)]
pub(crate) struct Baton {
    turn: Box<Turn>,
    /// Until when it can be trusted.
    deadline: Instant,
}

/// What a task has that took a baton over.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) turn: Box<Turn>,
    pub(super) owner: Owner,
    pub(super) token: Option<u64>,
    pub(super) deadline: Instant,
    pub(super) renew_at: Option<Instant>,
}

impl Turn {
    /// `token` is the first of `tokens` that the grant reserved; `handed_until` is where the first lease of a hand-over
    /// ends.
    pub(super) fn new(
        owner: Owner,
        began: Instant,
        handed_until: Option<Instant>,
        token: Option<u64>,
        tokens: u32,
        mark: Mark,
    ) -> Box<Self> {
        let tokens = token.map_or(0..0, |first| first + 1..first + u64::from(tokens));
        Box::new(Self {
            owner,
            began,
            passed: 0,
            lasts_until: began,
            handed_until,
            tokens,
            mark,
        })
    }

    pub(super) fn lasts(&mut self, until: Instant) {
        self.lasts_until = self.lasts_until.max(until);
    }

    pub(super) fn next_token(&mut self) -> Option<u64> {
        self.tokens.next()
    }

    pub(super) fn pass_on(self: Box<Self>, deadline: Instant) -> Baton {
        Baton {
            turn: self,
            deadline,
        }
    }
}

impl Baton {
    pub(super) fn key(&self) -> &LockKey {
        self.turn.mark.key()
    }

    pub(super) fn mark(&self) -> &Mark {
        &self.turn.mark
    }

    /// Whose the key is in the store.
    pub(super) fn owner(&self) -> Owner {
        self.turn.owner
    }

    /// The way to end the turn.
    pub(super) fn release(&self) -> Release {
        Release {
            claim: Claim {
                key: self.key().clone(),
                owner: self.turn.owner,
                share: None,
            },
            keep: Duration::ZERO,
        }
    }

    /// Until when the store may have it.
    pub(super) fn lasts_until(&self) -> Instant {
        self.deadline.max(self.turn.lasts_until)
    }

    /// Uses the hold as it is, or gives it back if the store must be asked: the turn is over, the lease does not fit, or
    /// there is no token left.
    pub(super) fn take_over(
        mut self,
        now: Instant,
        options: &Resolved,
        limits: &Defaults,
    ) -> Result<Taken, Self> {
        let turn = &mut self.turn;
        let over = turn.passed >= limits.local_handoffs || now >= turn.began + limits.local_turn;
        // After a crash, the key stays taken for no longer than the lease that was asked for.
        let too_long = turn.lasts_until > now + options.lease;
        let fresh = turn
            .handed_until
            .is_some_and(|until| self.deadline <= until);
        let renew_at = time::passed_on(now, self.deadline, fresh, options);
        let Some(renew_at) = renew_at.filter(|_| !over && !too_long) else {
            return Err(self);
        };
        let token = if options.fenced {
            let Some(token) = turn.next_token() else {
                return Err(self);
            };
            Some(token)
        } else {
            None
        };
        turn.passed += 1;
        Ok(Taken {
            owner: turn.owner,
            token,
            deadline: self.deadline,
            renew_at,
            turn: self.turn,
        })
    }
}
