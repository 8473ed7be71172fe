//! How a guard ends: its hold is released, or its share given back.

use std::sync::Arc;

use super::Guard;
use crate::engine::reentrancy::{End, NestedGate};
use crate::error::LockError;

impl Guard {
    /// Ends the hold, or gives back the share. What it has lent is lost.
    pub(crate) async fn finish(&self) -> Result<(), LockError> {
        if let Some(gate) = self.close_gate() {
            gate.until_at_rest().await;
        }
        match &self.borrowed {
            Some(borrowed) => {
                drop(borrowed.take());
                let loss = borrowed.from.loss();
                loss.map_or(Ok(()), |reason| Err(self.hold.lost_error(reason)))
            }
            None => self.engine.release(&self.hold).await,
        }
    }

    /// Ends the hold, or gives back the share, in the background.
    pub(crate) fn finish_in_background(&self) {
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
