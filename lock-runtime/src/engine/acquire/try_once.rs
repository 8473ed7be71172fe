//! A request with no time to wait.

use std::sync::Arc;

use lock_store::{Instant, StoreErrorKind};

use super::command::CommandOutcome;
use super::task::AcquireTask;
use crate::engine::hold::Hold;
use crate::error::LockError;

impl AcquireTask<'_> {
    /// One try, one round trip, now. One more if the connection stays silent and another takes its
    /// place in time.
    pub(super) async fn try_once(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let (engine, key) = (self.engine, self.request.claim.key.clone());
        if let Some(released) = engine.local_queues.until_released(&key) {
            // A release may hang at a connection that another takes the place of.
            let by = now + self.budget.latest_end(None).saturating_duration_since(now) / 2;
            let _ = engine.clock.by(by, released).await;
            now = engine.clock.now();
        }
        if engine.is_closing() {
            return Err(LockError::Shutdown);
        }
        let mut outcome = self.send(None, now).await?;
        now = engine.clock.now();
        // Silence that ends before the time is up is that of a connection and not of the store.
        let silent = match &outcome {
            CommandOutcome::Failed(error) => error.kind() == StoreErrorKind::Timeout,
            _ => false,
        };
        if silent && self.pending_outcome.is_some() && now < self.budget.latest_end(None) {
            outcome = self.send(None, now).await?;
        }
        match outcome {
            CommandOutcome::Held(hold) => Ok(hold),
            CommandOutcome::Busy { holder, .. } => Err(engine.busy(&key, &self.budget, holder)),
            CommandOutcome::Skipped => Err(engine.busy(&key, &self.budget, None)),
            CommandOutcome::Failed(error)
            | CommandOutcome::Unusable(error)
            | CommandOutcome::Cut(error) => Err(self.unavailable(error)),
        }
    }
}
