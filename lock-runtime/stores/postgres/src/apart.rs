//! Requests for several rows: in one statement, or apart if somebody keeps one of the rows.

use futures_util::future::join_all;
use lock_store::{Answer, Failure, Instant, Replied, StoreErrorKind};

use crate::statement::{LINK, Statement};
use crate::store::{LOCKED_TRY, PostgresStore};

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
        let kept = match requests.len() {
            0 | 1 => KeptRow::IsAwaited,
            _ => KeptRow::IsTold,
        };
        let failure = match carry_out(requests.clone(), kept).await {
            Ok(answer) => return Ok(answer.map(|all| all.into_iter().map(Ok).collect())),
            Err(failure) => failure,
        };
        let is_kept = failure.error.kind() == StoreErrorKind::Contended;
        let has_time = self.pool.clock.now() + LOCKED_TRY <= by;
        if kept == KeptRow::IsAwaited || !is_kept || !has_time {
            return Err(failure);
        }
        let each = requests.into_iter();
        let each = each.map(|one| carry_out(vec![one], KeptRow::IsAwaited));
        let replies = join_all(each).await.into_iter().map(|reply| {
            let first = reply?.value.into_iter().next();
            first.ok_or_else(|| failure.clone())
        });
        let replies: Vec<_> = replies.collect();
        match replies.iter().all(Result::is_err) {
            true => Err(failure),
            false => Ok(Answer::new(replies, LINK)),
        }
    }
}
