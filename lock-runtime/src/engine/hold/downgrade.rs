//! How a writer becomes a reader.

use lock_store::{Permits, Released};

use super::Hold;
use crate::engine::Engine;
use crate::engine::errors::unavailable;
use crate::error::{LockError, LostReason};

impl Engine {
    /// Turns a writer into a reader.
    pub(crate) async fn downgrade(&self, hold: &Hold) -> Result<(), LockError> {
        self.check_process()?;
        if hold
            .permits()
            .is_none_or(|permits| permits.of != Permits::READ_WRITE)
        {
            return Err(LockError::config(
                "only the guard of a write lock can be downgraded; \
                 this is an exclusive lock or a semaphore",
            ));
        }
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        let part = &hold.parts()[0];
        let claim = hold.claim(part);
        // From here on the store may have it as a reader.
        hold.state.lock().permits = Some(Permits::READ);
        let sent = self.clock.now();
        let result = self.store.shrink(claim, 1, self.command_by()).await;
        self.liveness.note(sent, &result);
        let answer = result.map_err(|failure| unavailable(Some(&part.key), failure.error))?;
        if answer.value == Released::NotHeld {
            hold.lose(LostReason::Gone);
            self.observed.record_lost(hold, self.clock.now());
            return Err(hold.lost_error(LostReason::Gone));
        }
        Ok(())
    }
}
