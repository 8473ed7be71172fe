//! What becomes of a hold that its task has ended: a handoff, or the end of the tenure.

use super::state::Handoff;
use crate::engine::Engine;
use crate::engine::background::undo::{PendingRelease, UndoJob};

impl Engine {
    /// Hands an ended hold off to the next waiting task of this process. If there is none, or the
    /// hold can't be handed off, the handoff comes back: keep it until the release is sent.
    pub(in crate::engine) fn hand_off(
        &self,
        handoff: Option<Handoff>,
    ) -> Result<(), Option<Handoff>> {
        let handoff = handoff.ok_or(None)?;
        if self.is_closing() {
            return Err(Some(handoff));
        }
        let handed_off = self.local_queues.hand_off(handoff);
        handed_off.map(drop).map_err(Some)
    }

    /// Hands off again what a waiter can't use, or ends the tenure in the background.
    pub(in crate::engine) fn hand_off_or_end(&self, handoff: Handoff) {
        if let Err(Some(handoff)) = self.hand_off(Some(handoff)) {
            self.end_tenure(&handoff);
        }
    }

    /// Ends in the background what the process has in the store and nobody uses.
    pub(in crate::engine) fn end_tenure(&self, handoff: &Handoff) {
        let now = self.clock.now();
        self.undo.send(UndoJob::Release(PendingRelease {
            requests: vec![handoff.release()],
            keep_until: now,
            expires: handoff.stored_until().max(now) + self.defaults.command_timeout,
            first: vec![self.local_queues.releasing(handoff.key())],
            pending_outcomes: Vec::new(),
            expected_gone: true,
        }));
    }
}
