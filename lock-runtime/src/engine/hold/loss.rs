//! How a hold is lost, and how its guard hears of it.

use std::sync::{Arc, MutexGuard};

use tokio::sync::futures::OwnedNotified;

use super::{Hold, HoldState};
use crate::error::{LockError, LostReason};

impl Hold {
    /// The reason of the loss, if it is lost. This call may be the first to notice that the
    /// deadline has passed.
    pub(crate) fn loss(&self) -> Option<LostReason> {
        let now = self.clock.now();
        let state = self.state.lock();
        if state.lost.is_none() && !state.released && now >= state.deadline {
            let reason = self.expiry(&state);
            self.set_lost(state, reason);
            return Some(reason);
        }
        state.lost
    }

    /// Why a hold was lost at its deadline.
    fn expiry(&self, state: &HoldState) -> LostReason {
        // The last renewal before its end is cut to end there.
        match (state.is_to_end(), self.renew) {
            (true, true) => LostReason::MaxHold,
            _ if state.renewing => LostReason::NotRenewed,
            (true, false) => LostReason::Expired,
            (false, _) => LostReason::Stalled,
        }
    }

    /// True if it was revoked and its body still runs. Until that ends, the store keeps the hold:
    /// nobody may come in beside a body that was told to stop.
    pub(in crate::engine) fn runs_on(&self) -> bool {
        let now = self.clock.now();
        let state = self.state.lock();
        state.lost == Some(LostReason::Revoked) && !state.released && now < state.deadline
    }

    /// Marks it as lost, for ever.
    pub(crate) fn lose(&self, reason: LostReason) {
        let state = self.state.lock();
        if state.lost.is_none() && !state.released {
            self.set_lost(state, reason);
        }
    }

    fn set_lost(&self, mut state: MutexGuard<'_, HoldState>, reason: LostReason) {
        state.lost = Some(reason);
        let tenure = state.tenure.take();
        // The end of a tenure wakes waiters, which is not done under the lock.
        drop(state);
        drop(tenure);
        tracing::warn!(key = %self.key().shortened(), %reason, "a lock was lost");
        self.notify_of_loss();
    }

    /// Wakes whoever waits for a loss: of the hold, or of a nested guard that shares it.
    pub(crate) fn notify_of_loss(&self) {
        if let Some(lost) = self.lost.get() {
            lost.notify_waiters();
        }
    }

    /// The reason of a loss that nobody was told yet: `None` from the second time on.
    pub(in crate::engine) fn take_unreported_loss(&self) -> Option<LostReason> {
        let mut state = self.state.lock();
        let reason = state.lost?;
        (!std::mem::replace(&mut state.told_lost, true)).then_some(reason)
    }

    /// Whether to log now that it is held for long: true once.
    pub(in crate::engine) fn take_first_long(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().said_long, true)
    }

    /// Waits until there is a loss: of the hold, or of a nested guard that shares it.
    pub(crate) async fn until_lost(&self, loss: impl Fn() -> Option<LostReason>) -> LostReason {
        loop {
            let notified = self.notified();
            if let Some(reason) = loss() {
                return reason;
            }
            notified.await;
        }
    }

    /// Ends when the hold, or a nested guard that shares it, may be lost. Ask after this call: so
    /// no loss is missed.
    pub(crate) fn notified(&self) -> OwnedNotified {
        let lost = self.lost.get_or_init(Arc::default);
        Arc::clone(lost).notified_owned()
    }

    pub(crate) fn lost_error(&self, reason: LostReason) -> LockError {
        LockError::lost(self.key().clone(), reason)
    }
}
