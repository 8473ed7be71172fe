//! Renews holds, many in one round trip, and ends those that have reached their deadline.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use lock_store::{Clock, Instant, Link, LockKey, Mutex, Store};
use tokio::sync::Notify;

use super::schedule::{FailedTries, Schedule, Scheduled};
use crate::config::Defaults;
use crate::engine::hold::Hold;
use crate::engine::hold::part::RenewedParts;
use crate::engine::liveness::Liveness;
use crate::engine::observed::Observed;
use crate::engine::timing;
use crate::error::LostReason;

/// How often the clock is read while anything is held. A machine that sleeps stops the alarms, but
/// not the clock.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

/// Keys renewed by one command: a script must stay short.
const BATCH: usize = 100;

/// Watches every live hold of a client.
#[derive(Debug)]
pub(crate) struct Watchdog {
    clock: Clock,
    store: Arc<dyn Store>,
    liveness: Arc<Liveness>,
    observed: Arc<Observed>,
    command_timeout: Duration,
    /// A hold that lasts longer is logged once.
    warn_held_after: Duration,
    schedule: Mutex<Schedule>,
    /// The earliest event is now earlier than what the task sleeps for.
    earlier: Notify,
    /// No hold is left, or no more than a shutdown leaves alone.
    idle: Notify,
}

impl Watchdog {
    pub(crate) fn new(
        clock: Clock,
        store: Arc<dyn Store>,
        liveness: Arc<Liveness>,
        observed: Arc<Observed>,
        defaults: &Defaults,
    ) -> Self {
        let (earlier, idle) = (Notify::new(), Notify::new());
        Self {
            clock,
            store,
            liveness,
            observed,
            command_timeout: defaults.command_timeout,
            warn_held_after: defaults.warn_held_after,
            schedule: Mutex::default(),
            earlier,
            idle,
        }
    }

    /// Watches a hold from now on. It is renewed then, and the rest of a fixed lease is asked for
    /// in any case.
    pub(crate) fn watch(&self, hold: Arc<Hold>, renew_at: Option<Instant>) {
        let renew_at = renew_at.or_else(|| hold.rest_at(self.clock.now()));
        self.set(hold, renew_at, Some(FailedTries::default()));
    }

    /// Watches a hold whose deadline has come nearer. It is renewed at once; of a fixed lease, the
    /// rest is asked for in time.
    pub(crate) fn renew_now(&self, hold: Arc<Hold>) {
        let now = self.clock.now();
        let renew_at = hold.renew.then_some(now).or_else(|| hold.rest_at(now));
        self.set(hold, renew_at, None);
    }

    /// Sets the next event of a hold, unless it was released: the next renewal, if that comes
    /// before its deadline, or else the deadline. Without `failed`, the failed tries stay what they
    /// were.
    fn set(&self, hold: Arc<Hold>, renew_at: Option<Instant>, failed: Option<FailedTries>) {
        let deadline = hold.deadline();
        let (at, renew) = match renew_at {
            Some(at) if at < deadline => (at, true),
            _ => (deadline, false),
        };
        let mut schedule = self.schedule.lock();
        // Under the lock: a release ends the hold first and then has it forgotten.
        let Ok(before) = hold.watch(at) else { return };
        let id = hold.id();
        let before = before.and_then(|before| schedule.events.remove(&(before, id)));
        let mut failed = failed
            .or_else(|| before.map(|event| event.failed))
            .unwrap_or_default();
        failed.due = Some(failed.due.map_or(at, |due| due.min(at)));
        let event = Scheduled {
            hold,
            failed,
            renew,
        };
        schedule.events.insert((at, id), event);
        if schedule.armed.is_none_or(|armed| at < armed) {
            schedule.armed = Some(at);
            drop(schedule);
            self.earlier.notify_one();
        }
    }

    /// Stops watching.
    pub(crate) fn forget(&self, hold: &Hold) {
        let schedule = self.schedule.lock();
        let at = hold.unwatch();
        self.forget_at(schedule, hold, at);
    }

    /// Stops watching a hold that has just ended, and can't be watched again.
    pub(in crate::engine) fn forget_ended(&self, hold: &Hold, watched_at: Option<Instant>) {
        self.forget_at(self.schedule.lock(), hold, watched_at);
    }

    fn forget_at(&self, mut schedule: MutexGuard<'_, Schedule>, hold: &Hold, at: Option<Instant>) {
        let event = at.and_then(|at| schedule.events.remove(&(at, hold.id())));
        let left = schedule.events.len();
        let idle = schedule.awaited.is_some_and(|most| left <= most);
        drop(schedule);
        drop(event);
        if idle {
            self.idle.notify_waiters();
        }
    }

    /// The live holds.
    pub(crate) fn holds(&self) -> Vec<Arc<Hold>> {
        self.schedule
            .lock()
            .events
            .values()
            .map(|event| Arc::clone(&event.hold))
            .collect()
    }

    /// Calls `note` with the keys of all live holds.
    pub(super) fn each_key(&self, note: &mut impl FnMut(&LockKey)) {
        let schedule = self.schedule.lock();
        let holds = schedule.events.values().map(|event| &event.hold);
        let parts = holds.flat_map(|hold| hold.parts().iter());
        parts.for_each(|part| note(&part.key));
    }

    /// Since when this client has the key, if it has it; of several holds, the longest.
    pub(crate) fn held_since(&self, key: &LockKey) -> Option<Instant> {
        let schedule = self.schedule.lock();
        let holds = schedule.events.values().map(|event| &event.hold);
        let of_key = holds.filter(|hold| hold.parts().iter().any(|part| part.key == *key));
        of_key.map(|hold| hold.since).min()
    }

    pub(crate) fn held(&self) -> usize {
        self.schedule.lock().events.len()
    }

    /// Waits until no hold is left but these.
    pub(crate) async fn until_idle_but(&self, own: &[Arc<Hold>]) {
        let is_own = |event: &Scheduled| own.iter().any(|hold| Arc::ptr_eq(hold, &event.hold));
        loop {
            let idle = self.idle.notified();
            {
                let mut schedule = self.schedule.lock();
                schedule.awaited = schedule.awaited.max(Some(own.len()));
                if schedule.events.values().all(is_own) {
                    return;
                }
            }
            idle.await;
        }
    }

    /// Ends the task.
    pub(crate) fn close(&self) {
        self.schedule.lock().closed = true;
        self.earlier.notify_one();
    }

    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let armed = {
                let mut schedule = self.schedule.lock();
                if schedule.closed {
                    return;
                }
                // To sleep on for an event that was removed is cheaper than to be woken for each
                // hold.
                let first = schedule.events.first_key_value().map(|((at, _), _)| *at);
                schedule.armed = first;
                first
            };
            match armed {
                None => self.earlier.notified().await,
                Some(at) => {
                    let alarm = at.min(self.clock.now() + CLOCK_CHECK);
                    let earlier = self.earlier.notified();
                    let rang = self.clock.by(alarm, earlier).await.is_none();
                    let now = self.clock.now();
                    if rang && now >= at {
                        self.act(now);
                    }
                }
            }
        }
    }

    fn act(self: &Arc<Self>, now: Instant) {
        let due = self.schedule.lock().take_due(now);
        let mut renewals = Vec::new();
        for event in due {
            let is_lost = event.hold.loss().is_some() && !event.hold.runs_on();
            if is_lost || event.hold.is_released() {
                self.observed.record_lost(&event.hold, now);
                self.forget(&event.hold);
            } else {
                // Whatever becomes of a renewal, the deadline is watched. That of a fixed lease may
                // have moved, by an extension.
                let hold = Arc::clone(&event.hold);
                let rest_at = hold.rest_at(now).filter(|_| !event.renew);
                self.set(hold, rest_at, Some(event.failed));
                renewals.extend(event.renew.then_some(event));
            }
        }
        // Each batch has a time limit and an outcome of its own. Holds with little time left travel
        // together, and those of different servers apart: nobody waits for another's server.
        renewals.sort_by_key(|event: &Scheduled| event.hold.deadline());
        let mut batches = BTreeMap::<Link, Vec<_>>::new();
        for renewal in renewals {
            match self.link_of(&renewal.hold) {
                Some(link) => batches.entry(link).or_default().push(renewal),
                None => self.clock.spawn(Arc::clone(self).renew(vec![renewal])),
            }
        }
        for renewals in batches.into_values() {
            let (mut batch, mut parts) = (Vec::new(), 0);
            for renewal in renewals {
                let more = renewal.hold.parts().len();
                if parts > 0 && parts + more > BATCH {
                    let full = std::mem::take(&mut batch);
                    self.clock.spawn(Arc::clone(self).renew(full));
                    parts = 0;
                }
                parts += more;
                batch.push(renewal);
            }
            self.clock.spawn(Arc::clone(self).renew(batch));
        }
    }

    /// The link for all keys of a hold. `None` if they have several.
    fn link_of(&self, hold: &Hold) -> Option<Link> {
        let links = hold.parts().iter();
        let mut links = links.map(|part| self.store.link_of(&part.key));
        let first = links.next()?;
        links.all(|link| link == first).then_some(first)
    }

    /// One round trip for all of them.
    async fn renew(self: Arc<Self>, events: Vec<Scheduled>) {
        let sent = self.clock.now();
        let events: Vec<_> = events
            .into_iter()
            .filter(|event| !event.hold.is_released())
            .filter_map(|event| lease_of_renewal(&event.hold, sent).map(|lease| (event, lease)))
            .collect();
        if events.is_empty() {
            return;
        }
        let deadlines = events.iter().map(|(event, _)| event.hold.deadline());
        let by = timing::renewal_by(sent, deadlines, self.command_timeout);
        let renewals = events
            .iter()
            .flat_map(|(event, lease)| event.hold.renewals(*lease));
        let result = self.store.renew(renewals.collect(), by).await;
        self.liveness.note_by(sent, by, &result);
        match result {
            Ok(answer) => {
                let mut replies = answer.value.into_iter();
                for (event, lease) in &events {
                    let all = RenewedParts::of(event.hold.parts(), &mut replies);
                    self.apply_renewal(event, *lease, sent, all);
                }
            }
            Err(failure) => {
                let now = self.clock.now();
                if let Some((first, _)) = events.iter().find(|(event, _)| !event.failed.is_told) {
                    let left = first.hold.deadline().saturating_duration_since(now);
                    tracing::warn!(
                        key = %first.hold.key().shortened(), holds = events.len(),
                        error = %failure.error, ?left,
                        "locks could not be renewed; it is tried again until their deadlines"
                    );
                }
                for (event, _) in &events {
                    self.renew_again(event, now, true);
                }
            }
        }
    }

    /// Until the deadline, it is tried again.
    fn renew_again(&self, event: &Scheduled, now: Instant, is_told: bool) {
        let mut failed = event.failed;
        failed.count += 1;
        failed.is_told |= is_told;
        let (hold, deadline) = (Arc::clone(&event.hold), event.hold.deadline());
        let again = timing::renewal_retry_at(now, hold.lease, deadline, failed.count);
        self.set(hold, Some(again), Some(failed));
    }

    fn apply_renewal(
        &self,
        event: &Scheduled,
        lease: Duration,
        sent: Instant,
        renewed: RenewedParts,
    ) {
        let hold = &event.hold;
        match renewed {
            RenewedParts::All { until } => {
                hold.prolong(sent, lease, until);
                if hold.loss().is_none() && !hold.is_released() {
                    self.observed.record_renewed(hold, self.late(event));
                    self.warn_of_long_hold(hold);
                }
                let renews = hold.renew;
                let next = renews.then(|| timing::renewal_at(sent, hold.lease, until));
                self.watch(Arc::clone(hold), next);
            }
            RenewedParts::Unanswered { until } => {
                if let Some(until) = until {
                    hold.trust_at_most(until);
                }
                let now = self.clock.now();
                if event.failed.count == 0 {
                    let left = hold.deadline().saturating_duration_since(now);
                    tracing::warn!(
                        key = %hold.key().shortened(), ?left,
                        "a lock could not be renewed; it is tried again until its deadline"
                    );
                }
                self.renew_again(event, now, false);
            }
            RenewedParts::Gone if hold.is_released() => {}
            RenewedParts::Gone => {
                hold.lose(LostReason::Gone);
                self.observed.record_lost(hold, self.clock.now());
                self.forget(hold);
            }
        }
    }

    /// How much later than planned a renewal was answered, if not by its first try.
    fn late(&self, event: &Scheduled) -> Duration {
        let due = event.failed.due.filter(|_| event.failed.count > 0);
        due.map_or(Duration::ZERO, |due| {
            self.clock.now().saturating_duration_since(due)
        })
    }

    fn warn_of_long_hold(&self, hold: &Hold) {
        let held = self.clock.now().saturating_duration_since(hold.since);
        if held >= self.warn_held_after && hold.take_first_long() {
            tracing::warn!(
                key = %hold.key().shortened(), ?held,
                "a lock is held for longer than expected (`warn_held_after`)"
            );
        }
    }
}

/// None: its `max_hold` or fixed lease ends, and it is not renewed any more.
fn lease_of_renewal(hold: &Hold, sent: Instant) -> Option<Duration> {
    let lease = hold.renewal_lease(sent);
    if lease.is_none() {
        tracing::debug!(
            key = %hold.key().shortened(),
            "max_hold or a fixed lease ends, not renewed any more"
        );
    }
    lease
}
