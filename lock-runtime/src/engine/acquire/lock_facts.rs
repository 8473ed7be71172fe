//! The facts for `liveness/busy_or_unavailable`, which decides when a waiting request stops: what
//! the store has said, since the request came, to it and to the others of this process that wait
//! for the key.

use std::sync::Arc;

use lock_store::timing::FALLBACK_POLL;
use lock_store::{Instant, StoreError, StoreErrorKind};

use super::task::AcquireTask;
use crate::engine::errors::unavailable;
use crate::engine::liveness::Said;
use crate::engine::liveness::busy_or_unavailable::{self, Facts};
use crate::engine::local_queue::{Doing, Waiter};
use crate::engine::timing;
use crate::error::LockError;

/// The most that a request has heard of the store itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HeardSoFar {
    Nothing,
    Asked,
    /// It was told that the key is taken.
    Busy,
}

impl AcquireTask<'_> {
    fn facts<'f>(&'f self, waiter: &Waiter, unusable: Option<&'f StoreError>) -> Facts<'f> {
        let (key, started) = (waiter.liveness(), self.budget.started);
        let now = || self.engine.clock.now();
        // Another server may have this key, and not another key.
        let silence = match self.engine.capabilities.fails_over {
            true => key.silence(),
            false => self.engine.liveness.silence(),
        };
        // Of a key, by when the last command was sent; of the one server, by when it was noted: its
        // silence is everybody's.
        let met = silence.filter(|(_, last)| *last >= started);
        let is_old = silence.is_some() && met.is_none();
        Facts {
            budget: &self.budget,
            answered: key.answered(),
            silent_since: met.map(|(since, _)| since),
            failing: key.failing(started, now),
            failed_before: is_old || key.failed_before(started, now),
            unusable,
        }
    }

    /// [`Facts::give_up_at`], also of a request that has no waiter.
    pub(super) fn give_up_at(&self, waiter: Option<&Waiter>) -> Instant {
        waiter.map_or_else(
            || self.budget.latest_end(None),
            |waiter| self.facts(waiter, None).give_up_at(),
        )
    }

    /// Why it ends now, whatever the store would say.
    pub(super) fn check_patience(
        &self,
        waiter: &Waiter,
        now: Instant,
        unusable: Option<&StoreError>,
    ) -> Result<(), LockError> {
        let last_failure = || self.engine.liveness.last_failure(self.budget.started);
        let overdue = self.facts(waiter, unusable).overdue(now, last_failure);
        overdue.map_or(Ok(()), |error| Err(self.unavailable(error)))
    }

    /// Ends the wait if its time is up, with an error that the store's last words bear out.
    pub(super) async fn check_time(
        &self,
        waiter: &Waiter,
        heard: HeardSoFar,
    ) -> Result<(), LockError> {
        let since = self.facts(waiter, None).evidence_from();
        if self.engine.clock.now() < since {
            return Ok(());
        }
        Box::pin(self.check_evidence(waiter, heard, since)).await
    }

    async fn check_evidence(
        &self,
        waiter: &Waiter,
        heard: HeardSoFar,
        since: Instant,
    ) -> Result<(), LockError> {
        let (engine, key) = (self.engine, &self.request.claim.key);
        let now = engine.clock.now();
        let by = self.budget.last_answer_by(now);
        waiter.signal.note_doing(Doing::Looks(by));
        engine.ask_for_name(key, waiter.liveness().holder());
        let mut said = self.evidence(waiter, since, by).await;
        // The first of them asks again at least this often.
        let lately = self.budget.started.checked_sub(FALLBACK_POLL);
        let was_told_busy = || heard == HeardSoFar::Busy || waiter.liveness().was_taken(lately);
        let (budget, has_asked) = (&self.budget, heard != HeardSoFar::Nothing);
        if busy_or_unavailable::has_first_try(
            budget,
            engine.clock.now(),
            &said,
            has_asked,
            was_told_busy,
        ) {
            let _ = engine.clock.by(by, waiter.signal.notified()).await;
            if engine.clock.now() < by {
                return Ok(());
            }
            // The first request may have been refused meanwhile.
            let liveness = waiter.liveness();
            said = liveness.said(self.budget.started, since).unwrap_or(said);
        }
        let verdict = busy_or_unavailable::judge(budget, engine.clock.now(), said, was_told_busy());
        let holder = || waiter.liveness().holder();
        engine.check_verdict(verdict, key, budget, holder)
    }

    /// What the store has said of the key since then, or says by then.
    async fn evidence(&self, waiter: &Waiter, since: Instant, by: Instant) -> Said {
        let clock = &self.engine.clock;
        let had_time = clock.now() < by;
        let known = waiter
            .liveness()
            .known(self.budget.started, since, |era| self.look(waiter, era, by));
        let known = clock.by(by, known).await;
        known.unwrap_or_else(|| Said::Failing(unanswered(had_time)))
    }

    pub(super) fn unavailable(&self, error: StoreError) -> LockError {
        unavailable(Some(&self.request.claim.key), error)
    }

    /// Looks at the key, on the client's own runtime: who waits for the answer may stop polling.
    fn look(&self, waiter: &Waiter, era: u64, by: Instant) {
        let (store, clock) = (Arc::clone(&self.engine.store), self.engine.clock.clone());
        let (queue, key) = (Arc::clone(waiter.queue()), self.request.claim.key.clone());
        let timeout = self.engine.defaults.command_timeout;
        self.engine.clock.spawn(async move {
            let sent = clock.now();
            let time = timing::look_time(by.saturating_duration_since(sent), timeout);
            let result = store.inspect(key, sent + time).await;
            let says_nothing = timing::stood_still(sent, clock.now(), timeout);
            queue.liveness.note_look(era, sent, says_nothing, &result);
        });
    }

    /// When to wake up if nothing happens.
    pub(super) fn wake_at(&self, waiter: &Waiter, asks_at: Option<Instant>) -> Instant {
        let now = self.engine.clock.now();
        self.facts(waiter, None).wake_at(now, asks_at)
    }
}

fn unanswered(had_time: bool) -> StoreError {
    let text = match had_time {
        true => "it does not answer",
        false => {
            "this process stood still, or was too busy, until the wait was over: \
             there was no time to ask it once more"
        }
    };
    StoreError::new(StoreErrorKind::Timeout, text)
}
