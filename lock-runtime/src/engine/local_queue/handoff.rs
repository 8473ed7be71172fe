//! A handoff: a hold on its way from one task of this process to the next.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Claim, Instant, LockKey, Owner, Release};

use super::state::{Handoff, LocalQueue, Tenure};
use crate::config::{Defaults, Resolved};
use crate::engine::Engine;
use crate::engine::background::cleanup::{CleanupJob, GoneHold, PendingRelease};
use crate::engine::fencing::window;
use crate::engine::timing;

/// What a task has after it took a handoff.
#[derive(Debug)]
pub(crate) struct TakenOver {
    pub(crate) tenure: Box<Tenure>,
    pub(crate) owner: Owner,
    pub(crate) token: Option<u64>,
    pub(crate) deadline: Instant,
    pub(crate) renew_at: Option<Instant>,
}

impl Handoff {
    pub(crate) fn key(&self) -> &LockKey {
        self.tenure.key()
    }

    pub(super) fn queue(&self) -> &Arc<LocalQueue> {
        &self.tenure.marker.queue
    }

    /// The owner of the key in the store.
    pub(crate) fn owner(&self) -> Owner {
        self.tenure.owner
    }

    /// The release that ends the tenure.
    pub(super) fn release(&self) -> Release {
        Release::new(
            Claim::new(self.key().clone(), self.tenure.owner, None),
            Duration::ZERO,
        )
    }

    /// The store keeps the key at most until then.
    pub(super) fn stored_until(&self) -> Instant {
        self.deadline.max(self.tenure.lasts_until)
    }

    /// Uses the hold as it is, or gives it back if the store must be asked: the tenure is over, the
    /// lease does not fit, or no token is left.
    pub(crate) fn take_over(
        mut self,
        now: Instant,
        options: &Resolved,
        limits: &Defaults,
    ) -> Result<TakenOver, Self> {
        let tenure = &mut self.tenure;
        // After a crash, the key stays taken for no longer than the lease that was asked for.
        let too_long = tenure.lasts_until > now + options.lease;
        let fresh = tenure
            .handed_until
            .is_some_and(|until| self.deadline <= until);
        let renew_at =
            timing::handed_off_renewal(now, self.deadline, fresh, tenure.allowed, options);
        let fits = !tenure.is_over(now, limits) && !too_long;
        let Some(renew_at) = renew_at.filter(|_| fits) else {
            return Err(self);
        };
        let token = if options.fenced {
            tenure.next_token()
        } else {
            None
        };
        if window::is_missing(options, token) {
            return Err(self);
        }
        tenure.handoffs += 1;
        Ok(TakenOver {
            owner: tenure.owner,
            token,
            deadline: self.deadline,
            renew_at,
            tenure: self.tenure,
        })
    }
}

impl Engine {
    /// Hands off an ended hold to the next waiting task of this process. If there is none, or it
    /// can't be handed off, the handoff comes back: keep it until the release is sent.
    pub(in crate::engine) fn hand_off(
        &self,
        handoff: Option<Handoff>,
    ) -> Result<(), Option<Handoff>> {
        let handoff = handoff.ok_or(None)?;
        if self.is_closing() {
            return Err(Some(handoff));
        }
        let result = self.local_queues.hand_off(handoff);
        result.map(drop).map_err(Some)
    }

    /// Hands off what its waiter can't use, or ends the tenure in the background.
    pub(in crate::engine) fn hand_off_or_end(&self, handoff: Handoff) {
        if let Err(Some(handoff)) = self.hand_off(Some(handoff)) {
            self.end_tenure(&handoff);
        }
    }

    /// Ends in the background what the process has in the store and nobody uses.
    pub(in crate::engine) fn end_tenure(&self, handoff: &Handoff) {
        let now = self.clock.now();
        self.cleanup.send(CleanupJob::Release(PendingRelease {
            requests: vec![handoff.release()],
            keep_until: now,
            expires: handoff.stored_until().max(now) + self.defaults.command_timeout,
            holds_back: vec![self.local_queues.releasing(handoff.key())],
            pending_outcomes: Vec::new(),
            gone: GoneHold::IsExpected,
        }));
    }
}
