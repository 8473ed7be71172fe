//! Nested requests: they share the hold of their call chain, one at a time.

use std::sync::Arc;

use lock_store::{Fenced, LockKey, Share};

use super::acquire::Held;
use super::hold::{Hold, Part};
use super::scope::{Frame, Loan};
use super::time::{self, Budget};
use super::{Engine, unavailable};
use crate::config::{Resolved, Wait};
use crate::error::{LockError, LostReason};

impl Engine {
    /// A nested request: no command, unless it is the first to ask for a fencing token.
    pub(super) async fn share(
        &self,
        frame: &Frame,
        keys: &[LockKey],
        options: &Resolved,
        budget: Budget,
    ) -> Result<Held, LockError> {
        let budget = &budget;
        let hold = frame.hold();
        self.check_nested(hold, keys, options)?;
        let loan = self.borrow(frame, options, budget).await?;
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        if hold.ended() {
            return Err(hold.lost_error(LostReason::Gone));
        }
        // It may have been downgraded while this waited.
        self.check_nested(hold, keys, options)?;
        if options.fenced {
            for part in keys.iter().filter_map(|key| hold.find(self.id, key)) {
                let part = &hold.parts()[part];
                if part.token().is_none() {
                    self.fence(hold, part, budget).await?;
                }
            }
        }
        hold.keep_at_least(options.hold_at_least);
        Ok(Held::Shared(
            Arc::clone(hold),
            loan,
            Arc::clone(frame.lend()),
        ))
    }

    /// Whether a request inside of a hold can share it.
    fn check_nested(
        &self,
        hold: &Hold,
        keys: &[LockKey],
        options: &Resolved,
    ) -> Result<(), LockError> {
        // The one that is held already is what the message is about.
        let held = keys.iter().find(|key| hold.find(self.id, key).is_some());
        let key = held.unwrap_or(hold.key());
        match (hold.share(), options.share) {
            (None, None) => {}
            (Some(has), Some(wants)) if has.of == wants.of => {
                // A reader that waited for the readers, and so for itself, would wait for ever.
                if wants.permits > has.permits {
                    return Err(LockError::WouldDeadlock { key: key.clone() });
                }
            }
            _ => return Err(LockError::KeyConflict { key: key.clone() }),
        }
        // Of several keys all are held, or the rest would be waited for while holding these, in any order.
        let missing = keys.iter().any(|key| hold.find(self.id, key).is_none());
        if missing || !options.reentrant {
            return Err(LockError::WouldDeadlock { key: key.clone() });
        }
        Ok(())
    }

    /// Waits until no sibling uses the hold.
    async fn borrow(
        &self,
        frame: &Frame,
        options: &Resolved,
        budget: &Budget,
    ) -> Result<Loan, LockError> {
        let hold = frame.hold();
        let shared = options.share == Some(Share::READ);
        if let Some(loan) = frame.try_borrow(shared) {
            return Ok(loan);
        }
        let closed = self.closed.notified();
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        let lost = hold.notified();
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        let turn = async {
            tokio::select! {
                biased;
                () = lost => None,
                () = closed => None,
                loan = frame.borrow(shared) => Some(loan),
            }
        };
        let turn = match options.wait {
            Wait::Forever => Some(turn.await),
            Wait::For(wait) => self.clock.by(budget.started + wait, turn).await,
        };
        match turn {
            Some(Some(loan)) => Ok(loan),
            Some(None) if self.is_closing() => Err(LockError::Shutdown),
            Some(None) => Err(hold.lost_error(hold.loss().unwrap_or(LostReason::Expired))),
            None => Err(self.busy(hold.key(), budget)),
        }
    }

    /// Fetches a fencing token for a hold that has none yet.
    async fn fence(&self, hold: &Hold, part: &Part, budget: &Budget) -> Result<(), LockError> {
        // Those that were reserved come first: one that the store gives now is higher than all of them.
        if let Some(token) = hold.reserved_token() {
            part.set_token(token);
            return Ok(());
        }
        let mut failures = 0;
        loop {
            let sent = self.clock.now();
            let result = self.store.fence(hold.claim(part), self.command_by()).await;
            self.pulse.note(sent, &result);
            match result.map(|answer| answer.value) {
                Ok(Fenced::Token(token)) => {
                    part.set_token(token);
                    return Ok(());
                }
                Ok(Fenced::Gone) => {
                    hold.lose(LostReason::Gone);
                    return Err(hold.lost_error(LostReason::Gone));
                }
                Ok(Fenced::Conflict) => {
                    return Err(LockError::KeyConflict {
                        key: part.key.clone(),
                    });
                }
                Err(failure) => {
                    failures += 1;
                    let again = self.clock.now() + time::backoff(failures);
                    if !failure.error.kind().is_transient() || again >= budget.gives_up(None) {
                        return Err(unavailable(Some(&part.key), failure.error));
                    }
                    self.clock.sleep_until(again).await;
                }
            }
        }
    }
}
