//! Requests for several rows: in one statement, or apart if somebody keeps one of the rows.

use std::time::Duration;

use futures_util::future::join_all;
use lock_store::{Answer, Failure, Instant, Replied, StoreErrorKind};

use crate::errors::is_of_kept_row;
use crate::statement::{LINK, Statement};
use crate::store::{LOCKED_TRY, PostgresStore, WAITS_FOR_ROW};

/// With less time than this, a statement that waited for a row leaves none for another try, however
/// near the server is.
const SHORT: Duration = WAITS_FOR_ROW.saturating_add(LOCKED_TRY.saturating_mul(2));
/// For this long after a row was kept, requests with a short time go apart from the beginning. Not
/// always: one statement and one commit for each is too much for a server that has many holds.
const KEPT_LASTS: Duration = Duration::from_secs(10);

/// How a statement meets a row that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptRow {
    /// It is sent again while there is time.
    IsAwaited,
    /// That is the answer, when it has waited once.
    IsTold,
}

impl KeptRow {
    pub(crate) fn of(self, statement: Statement) -> Statement {
        match self {
            Self::IsAwaited => statement,
            Self::IsTold => statement.once(),
        }
    }
}

impl PostgresStore {
    /// Carries out all of them together. If somebody keeps a row, each is carried out by itself:
    /// the others don't wait for that one. If none is carried out, that is the error.
    pub(crate) async fn together_or_apart<R, T, F>(
        &self,
        requests: Vec<R>,
        by: Instant,
        carry_out: impl Fn(Vec<R>, KeptRow) -> F,
    ) -> Replied<Vec<Result<T, Failure>>>
    where
        R: Clone,
        F: Future<Output = Replied<Vec<T>>>,
    {
        let all = |answer: Answer<Vec<T>>| answer.map(|all| all.into_iter().map(Ok).collect());
        if requests.len() < 2 {
            return carry_out(requests, KeptRow::IsAwaited).await.map(all);
        }
        let clock = &self.pool.clock;
        let (last, is_short) = (self.last_kept_took(), self.is_short(by));
        if !self.goes_apart(by) {
            let began = clock.now();
            let failure = match carry_out(requests.clone(), KeptRow::IsTold).await {
                Ok(answer) => return Ok(all(answer)),
                Err(failure) => failure,
            };
            let is_kept = is_of_kept_row(&failure);
            // Without an answer in a short time, it may have waited for a row, and for longer.
            let is_silent = failure.unknown.is_some();
            let may_be_kept =
                is_short && is_silent && failure.error.kind() == StoreErrorKind::Timeout;
            let took = clock.now() - began;
            if is_kept {
                self.note_kept_row(took);
            } else if may_be_kept {
                self.note_kept_row(took.max(last));
            }
            let way = took.saturating_sub(WAITS_FOR_ROW);
            if !is_kept || clock.now() + LOCKED_TRY.max(way) > by {
                return Err(failure);
            }
        }
        let each = requests.into_iter();
        let each = each.map(|one| carry_out(vec![one], KeptRow::IsAwaited));
        let replies = join_all(each).await.into_iter().map(|reply| {
            let first = reply?.value.into_iter().next();
            first.ok_or_else(|| self.nothing())
        });
        let replies: Vec<_> = replies.collect();
        let failures = || replies.iter().filter_map(|reply| reply.as_ref().err());
        if failures().any(is_of_kept_row) {
            self.note_kept_row(self.last_kept_took().max(last));
        }
        match failures().count() < replies.len() {
            true => Ok(Answer::new(replies, LINK)),
            false => Err(most_telling(failures()).unwrap_or_else(|| self.nothing())),
        }
    }

    fn nothing(&self) -> Failure {
        Failure::unknown(self.silence(), LINK)
    }

    pub(crate) fn note_kept_row(&self, took: Duration) {
        *self.row_kept.lock() = Some((self.pool.clock.now(), took));
    }

    /// How long a try took that met a kept row lately.
    fn kept_lately(&self) -> Option<Duration> {
        let now = self.pool.clock.now();
        let (at, took) = (*self.row_kept.lock())?;
        (now < at + KEPT_LASTS).then_some(took)
    }

    pub(crate) fn last_kept_took(&self) -> Duration {
        self.kept_lately().unwrap_or_default()
    }

    fn is_short(&self, by: Instant) -> bool {
        by < self.pool.clock.now() + SHORT.max(2 * self.last_kept_took())
    }

    /// Somebody kept a row lately, and there is no time for another way after a try at it.
    pub(crate) fn goes_apart(&self, by: Instant) -> bool {
        self.is_short(by) && self.kept_lately().is_some()
    }
}

/// Of requests that all failed: one that may yet be carried out, or one that says more than that a
/// row is kept.
fn most_telling<'f>(failures: impl Iterator<Item = &'f Failure>) -> Option<Failure> {
    let rank = |failure: &&Failure| (failure.unknown.is_some(), !is_of_kept_row(failure));
    failures.max_by_key(rank).cloned()
}

#[cfg(test)]
mod tests {
    use lock_store::StoreError;

    use super::*;

    #[test]
    fn of_many_failures_the_one_is_told_that_may_have_an_effect_or_says_more() {
        let error = |kind| StoreError::new(kind, "h:1: it says so");
        let kept = Failure::without_effect(error(StoreErrorKind::Contended));
        let standby = Failure::without_effect(error(StoreErrorKind::ReadOnly));
        let gone = Failure::unknown(error(StoreErrorKind::Disconnected), LINK);
        let told = |failures: &[&Failure]| most_telling(failures.iter().copied()).unwrap();
        assert_eq!(
            told(&[&kept, &kept]).error.kind(),
            StoreErrorKind::Contended
        );
        let told_one = told(&[&kept, &standby, &kept]);
        assert_eq!(told_one.error.kind(), StoreErrorKind::ReadOnly);
        for order in [[&gone, &standby, &kept], [&kept, &standby, &gone]] {
            assert!(told(&order).unknown.is_some());
        }
    }
}
