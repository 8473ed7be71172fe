//! The one decision between "busy" and "unavailable": when a request stops waiting, and with which
//! error. Pure: `lock_facts` (of `acquire`) and `latch_facts` (of `latch`) bring the facts.
//!
//! At any time ([`Facts::overdue`]):
//!
//! | wait | what is known | the request |
//! |---|---|---|
//! | any | nothing was heard of the store for `unavailable_after`, and it has met that | is unavailable |
//! | without end | its grants came too late to be used | is unavailable |
//! | without end | commands have failed for the client's default wait, one since it came | is unavailable |
//! | any | anything else | waits |
//!
//! At the end, the store must have spoken since [`Facts::evidence_from`], or is asked once more
//! ([`judge`]):
//!
//! | wait | the store | was told "busy" | the request |
//! |---|---|---|---|
//! | with time left | says or fails whatever it may | | waits |
//! | any | fails, or does not answer | | is unavailable |
//! | without end | says anything | | waits |
//! | over | says that the key is taken | | is busy |
//! | over | answers | yes | is busy |
//! | over | answers | no, and the request has not asked yet | has its first try ([`has_first_try`]) |
//! | over | answers | no | is unavailable |
//! | over | lets nobody at the key | yes | is busy |
//! | over | lets nobody at the key | no | is unavailable |

use lock_store::timing::FALLBACK_POLL;
use lock_store::{Instant, StoreError, StoreErrorKind};

use super::{Failing, Said};
use crate::engine::timing::Budget;

/// What a request knows of the store.
pub(in crate::engine) struct Facts<'f> {
    pub(in crate::engine) budget: &'f Budget,
    /// Send time of the last command that was answered.
    pub(in crate::engine) answered: Option<Instant>,
    /// Since when nothing at all was heard, if the request has met that: a command was found
    /// unanswered since it came. Of a latch, one task looks for all, and any silence counts.
    pub(in crate::engine) silent_since: Option<Instant>,
    /// How commands fail, if one has failed since the request came; of a latch, how its looks fail.
    pub(in crate::engine) failing: Option<Failing>,
    /// Commands failed before it came, and none since. It wakes up soon, to hear of the next.
    pub(in crate::engine) failed_before: bool,
    /// Why none of its last grants could be used.
    pub(in crate::engine) unusable: Option<&'f StoreError>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(in crate::engine) enum Verdict {
    Waits,
    Busy,
    Unavailable(StoreError),
}

impl Facts<'_> {
    /// When the request ends if the store stays as it is, whatever is left of a wait without end.
    pub(in crate::engine) fn give_up_at(&self) -> Instant {
        let silent = self.budget.latest_end(self.answered);
        let impatient = self.patience_ends().unwrap_or(silent);
        let gives_up = silent.min(impatient);
        self.budget.cut_by_silence(gives_up, self.silent_since)
    }

    fn silence_ends(&self) -> Option<Instant> {
        self.budget.silence_ends(self.silent_since)
    }

    fn patience_ends(&self) -> Option<Instant> {
        let failing = self.failing.as_ref()?;
        Some(self.budget.lose_patience_at(failing.since))
    }

    /// Why the request ends now, whatever the store would say. `last_failure` is for a silence that
    /// others have met.
    pub(in crate::engine) fn overdue(
        &self,
        now: Instant,
        last_failure: impl FnOnce() -> StoreError,
    ) -> Option<StoreError> {
        let failing = self.failing.as_ref().map(|failing| &failing.error);
        if self.silence_ends().is_some_and(|ends| now >= ends) {
            return Some(failing.cloned().unwrap_or_else(last_failure));
        }
        if self.budget.end().is_some() {
            return None;
        }
        let impatient = self.patience_ends().is_some_and(|ends| now >= ends);
        self.unusable.or(failing.filter(|_| impatient)).cloned()
    }

    /// From then on, the store must have spoken for the request to wait on.
    pub(in crate::engine) fn evidence_from(&self) -> Instant {
        let last_recheck = self.budget.last_recheck();
        last_recheck.unwrap_or_else(|| self.give_up_at())
    }

    /// When to wake up if nothing happens.
    pub(in crate::engine) fn wake_at(&self, now: Instant, asks_at: Option<Instant>) -> Instant {
        let soon = now + FALLBACK_POLL;
        let end = self.budget.end().unwrap_or_else(|| {
            // It may have to go on after that.
            let gives_up = self.give_up_at();
            if gives_up > now { gives_up } else { soon }
        });
        let last_recheck = self.budget.last_recheck().filter(|at| *at > now);
        let again = self.failed_before && self.budget.may_end_early();
        [
            asks_at,
            last_recheck,
            self.silence_ends(),
            again.then_some(soon),
        ]
        .into_iter()
        .flatten()
        .fold(end, Instant::min)
    }
}

/// Whether a request whose wait is over has its first try yet, when it is its turn. It waits for
/// that until the store's last answer is due ([`Budget::last_answer_by`]). If its turn does not
/// come, what the first request has heard meanwhile is judged.
pub(in crate::engine) fn has_first_try(
    budget: &Budget,
    now: Instant,
    said: &Said,
    has_asked: bool,
    was_told_busy: impl FnOnce() -> bool,
) -> bool {
    let is_over = budget.end().is_some_and(|end| now >= end);
    is_over && matches!(said, Said::Alive { .. }) && !has_asked && !was_told_busy()
}

/// What becomes of a request when the store has said this.
pub(in crate::engine) fn judge(
    budget: &Budget,
    now: Instant,
    said: Said,
    was_told_busy: bool,
) -> Verdict {
    let ends = budget.end();
    match said {
        // A failing store may come back in time for another try.
        _ if ends.is_some_and(|ends| now < ends) => Verdict::Waits,
        Said::Failing(error) => Verdict::Unavailable(error),
        _ if ends.is_none() => Verdict::Waits,
        Said::Alive { refused_before } if !was_told_busy => {
            Verdict::Unavailable(not_to_this_one(refused_before))
        }
        Said::Contended(error) if !was_told_busy => Verdict::Unavailable(error),
        Said::Taken | Said::Alive { .. } | Said::Contended(_) => Verdict::Busy,
    }
}

fn not_to_this_one(refused_before: Option<StoreError>) -> StoreError {
    let mut text = "it answers others, and gave this request no answer within its wait".to_owned();
    if let Some(error) = refused_before {
        text.push_str("; before that, it refused another request: ");
        text.push_str(error.detail());
    }
    StoreError::new(StoreErrorKind::Timeout, text)
}

#[cfg(test)]
mod tests;
