//! A request with no time to wait.

use std::sync::Arc;

use lock_store::{Instant, StoreErrorKind};

use super::command::Step;
use super::task::AcquireTask;
use crate::engine::errors::unavailable;
use crate::engine::hold::Hold;
use crate::error::LockError;

impl AcquireTask<'_> {
    /// One try, one round trip, now. One more if the connection stays silent and another takes its
    /// place in time.
    pub(super) async fn once(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let (engine, key) = (self.engine, self.request.claim.key.clone());
        if let Some(settled) = engine.local_queues.settled(&key) {
            // A release may hang at another server, where its hold has more keys.
            let by = now + self.budget.gives_up(None).saturating_duration_since(now) / 2;
            let _ = engine.clock.by(by, settled).await;
            now = engine.clock.now();
        }
        if engine.is_closing() {
            return Err(LockError::Shutdown);
        }
        let mut step = self.send(None, now).await?;
        now = engine.clock.now();
        // Silence that ends before the time is up is that of a connection and not of the store.
        let silent =
            matches!(&step, Step::Failed(error) if error.kind() == StoreErrorKind::Timeout);
        if silent && self.late.is_some() && now < self.budget.gives_up(None) {
            step = self.send(None, now).await?;
        }
        match step {
            Step::Held(hold) => Ok(hold),
            Step::Busy { holder, .. } => Err(engine.busy(&key, &self.budget, holder)),
            Step::PassedOver => Err(engine.busy(&key, &self.budget, None)),
            Step::Failed(error) | Step::Unusable(error) => Err(unavailable(Some(&key), error)),
            Step::Cut => {
                let failure = engine.liveness.last_failure(self.budget.started);
                Err(unavailable(Some(&key), failure))
            }
        }
    }
}
