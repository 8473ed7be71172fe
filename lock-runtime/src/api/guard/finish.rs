//! How a guard ends: its hold is released, or its share given back.

use std::sync::Arc;

use super::Guard;
use crate::engine::reentrancy::{End, NestedGate};
use crate::error::LockError;

impl Guard {
    /// Releases, and waits for the store's answer. With [`HoldAfter::Success`](crate::HoldAfter)
    /// this is the success.
    ///
    /// If another task of this process takes the hold over
    /// ([`LockClientBuilder::local_tenure`](crate::LockClientBuilder::local_tenure)), the store is
    /// not asked. Then this does not notice that an operator took the hold away.
    ///
    /// # Errors
    /// - [`LockError::Lost`]: the hold was gone before.
    /// - [`LockError::Unavailable`]: the store did not answer within the command timeout. The
    ///   background goes on until it does, or until the lease has ended. A Redis server that is
    ///   slow but answers other commands may take 10 s longer.
    ///
    /// # Cancel safety
    /// If the future is dropped, the release is finished in the background.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").acquire().await?;
    /// guard.release().await?;
    /// assert!(client.lock("k").try_acquire().await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release(self) -> Result<(), LockError> {
        self.note_success();
        self.finish().await
    }

    /// Whether the key stays taken after a success only.
    pub(crate) fn waits_for_success(&self) -> bool {
        !self.kept_after_success.is_zero()
    }

    /// Keeps the key taken for the rest of `hold_at_least`, if only a success does.
    pub(crate) fn note_success(&self) {
        self.hold.keep_at_least(self.since, self.kept_after_success);
    }

    /// Ends the hold, or gives back the share. What it has lent is lost.
    pub(crate) async fn finish(&self) -> Result<(), LockError> {
        if let Some(gate) = self.close_gate() {
            gate.until_at_rest().await;
        }
        match &self.borrowed {
            Some(borrowed) => {
                drop(borrowed.take());
                let loss = borrowed.from.loss();
                loss.map_or(Ok(()), |reason| Err(self.lost_error(reason)))
            }
            None => {
                let released = self.engine.release(&self.hold).await;
                released.map_err(|error| self.named(error))
            }
        }
    }

    /// Ends the hold, or gives back the share, in the background.
    pub(crate) fn finish_in_background(&self) {
        if self.engine.has_no_thread() {
            return;
        }
        let gate = self.close_gate();
        if gate.is_some_and(|gate| gate.leave_end_to_polls(|| self.end())) {
            return;
        }
        match &self.borrowed {
            Some(borrowed) => drop(borrowed.take()),
            None => self.engine.release_in_background(&self.hold),
        }
    }

    fn close_gate(&self) -> Option<&Arc<NestedGate>> {
        let gate = self.nested_gate.get()?;
        gate.close();
        Some(gate)
    }

    /// What is left to do when no body to which it has lent its hold is polled any more.
    fn end(&self) -> End {
        match &self.borrowed {
            Some(borrowed) => {
                let permit = borrowed.take();
                Box::new(move || drop(permit))
            }
            None => {
                let (engine, hold) = (Arc::clone(&self.engine), Arc::clone(&self.hold));
                Box::new(move || engine.release_in_background(&hold))
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.finish_in_background();
    }
}
