//! The end of a turn beside clients without a queue (see [`Pollers`](crate::pollers::Pollers)).

use std::iter::once;
use std::time::Duration;

use lock_store::{Instant, LockKey, Owner, Released, Replied};

use crate::scripts;
use crate::store::RedisStore;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, leaves_more, released};

impl RedisStore {
    /// Frees an exclusive lock for whoever asks first, until then. Afterwards the queue has its
    /// turn, if nobody has come.
    pub(super) async fn leave_free(
        &self,
        key: &LockKey,
        owner: Owner,
        until: Instant,
        by: Instant,
        patience: Instant,
    ) -> Replied<Released> {
        let leave = Request::script(self.form(&scripts::LEAVE_FREE), |command| {
            self.name(command, once(key));
            command.add_text(owner);
        });
        let leave = leave.patient(Some(patience));
        let left: Reply<i64> = self.call(key, by, &leave).await?;
        if left.value.as_ref().is_ok_and(|reply| leaves_more(*reply)) {
            self.serve_at(key, until);
        }
        Ok(left.map(released))
    }

    /// If the request is lost, or leaves some, the waiters have their turn when one asks again.
    fn serve_at(&self, key: &LockKey, at: Instant) {
        let serve = self.hand_over_only(key);
        let (servers, clock) = (self.servers.clone(), self.clock.clone());
        let (slot, timeout) = (self.slot(key), self.command_timeout);
        self.clock.spawn(async move {
            clock.sleep_until(at).await;
            let _ = servers.exchange(slot, clock.now() + timeout, &serve).await;
        });
    }

    /// Waits while the key is left alone. True if it was; then others come first, too.
    pub(super) async fn leave_alone(&self, key: &LockKey, lease: Duration, by: Instant) -> bool {
        if !self.pollers.has_any() {
            return false;
        }
        let now = self.clock.now();
        let Some(until) = self.pollers.free_until(key, now) else {
            return false;
        };
        let time = until.saturating_duration_since(now);
        self.yield_to_others(now, time, lease, by).await;
        true
    }

    /// Lets others come first for some time, but never for so long that the request could fail.
    pub(crate) async fn yield_to_others(
        &self,
        now: Instant,
        time: Duration,
        lease: Duration,
        by: Instant,
    ) {
        let most = lease.min(by.saturating_duration_since(now)) / 4;
        self.clock.sleep_until(now + time.min(most)).await;
    }
}
