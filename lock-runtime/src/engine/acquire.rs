//! One acquisition, from the request to what the caller gets.

use std::sync::Arc;

use super::Engine;
use super::attempt::Attempt;
use super::hold::Hold;
use super::scope::{self, Loan};
use super::time::Budget;
use crate::config::Resolved;
use crate::error::LockError;
use crate::key::LockKey;

/// What a request ends with: a hold of its own, or a share of the one its call chain has.
#[derive(Debug)]
pub(crate) enum Held {
    Own(Arc<Hold>),
    Shared(Arc<Hold>, Loan),
}

impl Engine {
    pub(crate) async fn acquire(
        &self,
        key: LockKey,
        options: &Resolved,
    ) -> Result<Held, LockError> {
        self.check(&key)?;
        let budget = Budget::new(self.clock.now(), options.wait, &self.defaults);
        if let Some(frame) = scope::enclosing(self.id, &key) {
            return self.share(&frame, options, &budget).await;
        }
        let mut attempt = Attempt::new(self, key, options, budget);
        let hold = if budget.may_wait() {
            attempt.wait().await
        } else {
            attempt.once().await
        }?;
        Ok(Held::Own(hold))
    }

    pub(super) fn busy(&self, key: &LockKey, budget: &Budget) -> LockError {
        let waited = self.clock.now().saturating_duration_since(budget.started);
        LockError::Busy {
            key: key.clone(),
            waited,
        }
    }
}
