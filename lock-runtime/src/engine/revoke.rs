//! Taking a lock from its holders in good order: their clients are asked to stop what runs, and
//! release when it has ended. The store says when they have.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{join_all, ready};
use futures_util::stream::{self, StreamExt};
use lock_store::{ClientMessage, FoundHolder, Instant, LockKey, Owner, RevokeAnswer};

use super::Engine;
use super::hold::Hold;
use super::revocation_inbox::{DEMANDS, Demand, Demands};
use crate::config::FAR;
use crate::error::{LockError, LostReason};
use crate::revocation::{Revocation, StillHeld, WhyHeld};

/// The first look at the store comes this long after the first demand; the pauses grow.
const FIRST_LOOK: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const LAST_LOOK: Duration = Duration::from_millis(250);
/// A demand without an answer is sent again.
const REPEAT: Duration = Duration::from_secs(1);
/// So many demands are on their way at once.
const AT_ONCE: usize = 64;

/// A holder that is to give up the lock.
#[derive(Debug)]
struct ToRevoke {
    found: FoundHolder,
    /// When it was asked.
    asked: Option<Instant>,
}

impl ToRevoke {
    /// Whose hold it is, if something may run under it.
    fn owner(&self) -> Option<Owner> {
        match &self.found {
            FoundHolder::Owner {
                owner, kept: false, ..
            } => Some(*owner),
            _ => None,
        }
    }

    fn is_same(&self, found: &FoundHolder) -> bool {
        match (&self.found, found) {
            (FoundHolder::Owner { owner, .. }, FoundHolder::Owner { owner: other, .. }) => {
                owner == other
            }
            (one, other) => one == other,
        }
    }
}

impl Engine {
    /// Asks the clients of all holders, or the one of this name, to end their holds, and waits
    /// until the store has none of them any more.
    pub(crate) async fn revoke(
        &self,
        key: LockKey,
        timeout: Duration,
        only: Option<Box<str>>,
    ) -> Result<Revocation, LockError> {
        self.check_key_and_client(&key)?;
        if !self.capabilities.tells {
            return Err(LockError::config(
                "this engine passes no messages between clients, so a holder can't be asked to \
                 stop; end its process; `force_release` lets the next one in beside it",
            ));
        }
        let only = only.as_deref();
        let mut looked = self.clock.now();
        let by = looked + timeout.min(FAR);
        let mut left: Vec<_> = self.list_holders(&key).await?;
        let owners = left.iter().filter_map(ToRevoke::owner);
        let _listening = self.revocations.listen(owners);
        let (mut pause, mut released) = (FIRST_LOOK, 0);
        let mut heard = self.revocations.answer_came.notified();
        let mut last_look = self.demand(&key, &mut left, only, by).await;
        loop {
            left.retain(|one| !self.is_another(one, only));
            let is_settled = left.iter().all(|one| self.is_settled(one, only));
            if is_settled || looked >= last_look {
                break;
            }
            let now = self.clock.now();
            let next = (now + pause).min(last_look.max(now));
            pause = (2 * pause).min(LAST_LOOK);
            let _ = self.clock.by(next, heard).await;
            let next = next.min(self.clock.now() + FIRST_LOOK);
            self.clock.sleep_until(next).await;
            heard = self.revocations.answer_came.notified();
            looked = self.clock.now();
            match self.list_holders(&key).await {
                Ok(there) => released += drop_ended(&mut left, &there),
                Err(error) if self.clock.now() >= by => return Err(error),
                // It is asked again.
                Err(_) => {}
            }
            if self.clock.now() < by {
                last_look = self.demand(&key, &mut left, only, by).await;
            }
        }
        let left = left.iter().map(|one| self.still_held(one, only));
        Ok(Revocation {
            released,
            left: left.collect(),
        })
    }

    async fn list_holders(&self, key: &LockKey) -> Result<Vec<ToRevoke>, LockError> {
        let command = self.store.holders(key.clone(), self.command_by());
        let holders = self.ask(Some(key), command).await?;
        let holders = self.expect_lock(key.clone(), holders).await?;
        let asked = None;
        let one = |found| ToRevoke { found, asked };
        Ok(holders.into_iter().map(one).collect())
    }

    /// Asks each that has not answered, many at once, all within one command's time: who could not
    /// be told in it is asked again. Returns when to look for the last time: at `by`, or soon after
    /// they have been told.
    async fn demand(
        &self,
        key: &LockKey,
        left: &mut [ToRevoke],
        only: Option<&str>,
        by: Instant,
    ) -> Instant {
        let mut told = Vec::new();
        for one in left {
            let Some(owner) = one.owner() else { continue };
            let now = self.clock.now();
            let is_early = one.asked.is_some_and(|at| now < at + REPEAT);
            let known = self.revocations.answered(owner, only);
            let known = known.map(|known| known.answer);
            let is_final = known.is_some_and(|answer| answer != RevokeAnswer::HasNone);
            if is_early || is_final {
                continue;
            }
            one.asked = Some(now);
            let (key, only) = (key.clone(), only.map(Box::from));
            if owner.client == self.id() {
                let answer = self.give_up(&key, owner, only.as_deref());
                self.revocations.on_message(self.answer(key, owner, answer));
                continue;
            }
            let demand = ClientMessage::Revoke {
                key,
                asker: self.id(),
                owner,
                only,
            };
            told.push(self.store.tell(owner.client, demand, self.command_by()));
        }
        let told = stream::iter(told).buffer_unordered(AT_ONCE);
        let note = |told| {
            if let Err(error) = told {
                let key = key.shortened();
                tracing::debug!(%key, %error, "the client of a holder is not told to stop");
            }
            ready(())
        };
        told.for_each(note).await;
        let told = self.clock.now();
        match told > by {
            true => told + FIRST_LOOK,
            false => by,
        }
    }

    /// Whether nothing more is to be expected of it.
    fn is_settled(&self, one: &ToRevoke, only: Option<&str>) -> bool {
        one.owner().is_none_or(|owner| {
            let known = self.revocations.answered(owner, only);
            known.is_some_and(|known| known.answer == RevokeAnswer::Refuses)
        })
    }

    /// Whether another client was meant.
    fn is_another(&self, one: &ToRevoke, only: Option<&str>) -> bool {
        only.is_some()
            && one.owner().is_none_or(|owner| {
                let known = self.revocations.answered(owner, only);
                known.is_some_and(|known| known.answer == RevokeAnswer::IsAnother)
            })
    }

    fn still_held(&self, one: &ToRevoke, only: Option<&str>) -> StillHeld {
        let known = one
            .owner()
            .and_then(|owner| self.revocations.answered(owner, only));
        let why = match (&one.found, &known) {
            (FoundHolder::Owner { kept: true, .. }, _) => WhyHeld::Kept,
            (FoundHolder::Foreign(_), _) => WhyHeld::Foreign,
            (FoundHolder::Owner { .. }, None) => WhyHeld::NoAnswer,
            (FoundHolder::Owner { .. }, Some(known)) => match known.answer {
                RevokeAnswer::Refuses => WhyHeld::Refused,
                _ => WhyHeld::Running,
            },
        };
        let client = known.map(|known| known.name);
        StillHeld { client, why }
    }

    /// Another client, or this one, wants the end of a hold.
    fn give_up(&self, key: &LockKey, owner: Owner, only: Option<&str>) -> RevokeAnswer {
        if only.is_some_and(|only| *only != *self.names.name) {
            return RevokeAnswer::IsAnother;
        }
        if !self.defaults.revocable {
            return RevokeAnswer::Refuses;
        }
        let meant = self.store.owner_of(owner);
        let is_meant = |hold: &&Arc<Hold>| {
            let mut parts = hold.parts().iter();
            parts.any(|part| part.owner == meant && part.key == *key)
        };
        let holds = self.watchdog.holds();
        let Some(hold) = holds.iter().find(is_meant) else {
            return RevokeAnswer::HasNone;
        };
        hold.lose(LostReason::Revoked);
        self.observed.record_lost(hold, self.clock.now());
        RevokeAnswer::Stops
    }

    fn answer(&self, key: LockKey, owner: Owner, answer: RevokeAnswer) -> ClientMessage {
        ClientMessage::Revoking {
            key,
            owner,
            name: Box::from(&*self.names.name),
            answer,
        }
    }
}

/// Leaves those that the store still has, as it has them. Returns how many have ended.
fn drop_ended(left: &mut Vec<ToRevoke>, there: &[ToRevoke]) -> usize {
    let before = left.len();
    left.retain_mut(|one| {
        let now = there.iter().find(|now| one.is_same(&now.found));
        if let Some(now) = now {
            one.found = now.found.clone();
        }
        now.is_some()
    });
    before - left.len()
}

/// The task that carries out the demands of others. Ends with the engine.
pub(super) async fn run_demands(engine: Weak<Engine>, mut demands: Demands) {
    let mut came = Vec::new();
    while demands.recv_many(&mut came, DEMANDS).await > 0 {
        let Some(engine) = engine.upgrade() else {
            return;
        };
        let carry_out = |demand| {
            let Demand {
                key,
                asker,
                owner,
                only,
            } = demand;
            let answer = engine.give_up(&key, owner, only.as_deref());
            (asker, engine.answer(key, owner, answer))
        };
        let answers: Vec<_> = came.drain(..).map(carry_out).collect();
        let (store, by) = (Arc::clone(&engine.store), engine.command_by());
        // A client that goes away does not wait for this.
        drop(engine);
        let told = answers.into_iter();
        let told = told.map(|(asker, answer)| store.tell(asker, answer, by));
        for error in join_all(told).await.into_iter().filter_map(Result::err) {
            tracing::debug!(%error, "another client is not told what becomes of its revocation");
        }
    }
}
