//! What becomes of a hold that its task has ended: a handoff, or the end of the tenure.

use lock_store::Instant;

use super::state::Handoff;
use crate::engine::Engine;
use crate::engine::background::undo::{Job, PendingRelease};

impl Engine {
    /// Passes an ended hold on to the next waiting task of this process. If there is none, or the
    /// hold can't be passed on, the handoff comes back: keep it until the release is sent.
    pub(in crate::engine) fn pass_on(
        &self,
        handoff: Option<Handoff>,
        now: Instant,
    ) -> Result<(), Option<Handoff>> {
        let handoff = handoff.ok_or(None)?;
        if self.is_closing() {
            return Err(Some(handoff));
        }
        let passed = self.local_queues.pass_on(handoff, now);
        passed.map(drop).map_err(Some)
    }

    /// Passes a handoff on that its waiter can't use, or ends the tenure in the background.
    pub(in crate::engine) fn pass_back(&self, handoff: Handoff) {
        if let Err(Some(handoff)) = self.pass_on(Some(handoff), self.clock.now()) {
            self.end_tenure(&handoff);
        }
    }

    /// Ends in the background what the process has in the store and nobody uses.
    pub(in crate::engine) fn end_tenure(&self, handoff: &Handoff) {
        let now = self.clock.now();
        self.undo.send(Job::Release(PendingRelease {
            requests: vec![handoff.release()],
            keep_until: now,
            expires: handoff.lasts_until().max(now) + self.defaults.command_timeout,
            first: vec![self.local_queues.releasing(handoff.key())],
            late: Vec::new(),
            expected_gone: true,
        }));
    }
}
