//! Nested requests: they share the hold of their call chain, one at a time.

use std::sync::Arc;

use super::acquire::Held;
use super::hold::Hold;
use super::scope::{Frame, Loan};
use super::time::{self, Budget};
use super::{Engine, unavailable};
use crate::config::{Resolved, Wait};
use crate::error::{LockError, LostReason};
use crate::store::Fenced;

impl Engine {
    /// A nested request: no command, unless it is the first to ask for a fencing token.
    pub(super) async fn share(
        &self,
        frame: &Frame,
        options: &Resolved,
        budget: &Budget,
    ) -> Result<Held, LockError> {
        let hold = frame.hold();
        if !options.reentrant {
            return Err(LockError::WouldDeadlock {
                key: hold.key.clone(),
            });
        }
        let loan = self.borrow(frame, options, budget).await?;
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        if options.fenced && hold.token().is_none() {
            self.fence(hold, budget).await?;
        }
        hold.keep_at_least(options.hold_at_least);
        Ok(Held::Shared(Arc::clone(hold), loan))
    }

    /// Waits until no sibling uses the hold.
    async fn borrow(
        &self,
        frame: &Frame,
        options: &Resolved,
        budget: &Budget,
    ) -> Result<Loan, LockError> {
        let hold = frame.hold();
        if let Some(loan) = frame.try_borrow() {
            return Ok(loan);
        }
        let closed = self.closed.notified();
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        let lost = Arc::clone(&hold.lost).notified_owned();
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        let turn = async {
            tokio::select! {
                biased;
                () = lost => None,
                () = closed => None,
                loan = frame.borrow() => Some(loan),
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
            None => Err(self.busy(&hold.key, budget)),
        }
    }

    /// Fetches a fencing token for a hold that has none yet.
    async fn fence(&self, hold: &Hold, budget: &Budget) -> Result<(), LockError> {
        let mut failures = 0;
        loop {
            let sent = self.clock.now();
            let result = self
                .store
                .fence(hold.key.clone(), hold.owner, self.command_by())
                .await;
            self.pulse.note(sent, &result);
            match result.map(|answer| answer.value) {
                Ok(Fenced::Token(token)) => {
                    hold.set_token(token);
                    return Ok(());
                }
                Ok(Fenced::Gone) => {
                    hold.lose(LostReason::Gone);
                    return Err(hold.lost_error(LostReason::Gone));
                }
                Ok(Fenced::Conflict) => {
                    return Err(LockError::KeyConflict {
                        key: hold.key.clone(),
                    });
                }
                Err(failure) => {
                    failures += 1;
                    let again = self.clock.now() + time::backoff(failures);
                    if !failure.error.kind().is_transient() || again >= budget.gives_up(None) {
                        return Err(unavailable(Some(&hold.key), failure.error));
                    }
                    self.clock.sleep_until(again).await;
                }
            }
        }
    }
}
