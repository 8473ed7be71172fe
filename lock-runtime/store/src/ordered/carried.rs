//! Operations over the client's connections.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::connecting::Connecting;
use super::engine::{Carried, OperationProgress, OrderedEngine};
use super::fault::{LiveConnection, OperationFault, gone, silent};
use crate::contract::{StoreFuture, warn_of_renewal};
use crate::error::{StoreError, StoreErrorKind};
use crate::instant::Instant;
use crate::link::{Answer, Failure, Replied};
use crate::request::{Renewal, Renewed};

/// Carries out an operation, which may be repeated: over another connection, if one ends.
///
/// # Errors
/// When there is no answer in time, or one that is final.
pub async fn carry_out<E, T, F>(
    engine: &E,
    by: Instant,
    operation: impl Fn(Arc<E::Live>) -> F,
) -> Replied<T>
where
    E: OrderedEngine,
    F: Future<Output = Carried<T, E>>,
{
    let (connecting, clock) = (engine.connecting(), &engine.clock);
    let mut unknown = None;
    loop {
        let live = match connecting.live(by).await {
            Ok(live) => live,
            Err(error) => return Err(Failure::new(error, unknown)),
        };
        let link = live.link();
        let server = live.server().to_owned();
        let error = match clock.by(by, operation(live)).await {
            Some(Ok(value)) => return Ok(Answer::new(value, link)),
            Some(Err(OperationFault::Lost(_))) if clock.now() < by => {
                unknown = Some(link);
                continue;
            }
            Some(Err(fault)) => error_of::<E>(fault, &server),
            None => silent(&server),
        };
        // Of several requests, others may have been carried out.
        return Err(Failure::unknown(error, link));
    }
}

fn error_of<E: OrderedEngine>(fault: OperationFault<E::Refusal>, server: &str) -> StoreError {
    match fault {
        OperationFault::Lost(error) => error,
        OperationFault::Refused(why) => E::refusal(Some(why), server),
        OperationFault::Unreadable => E::refusal(None, server),
        OperationFault::Foreign(name) => StoreError::new(StoreErrorKind::Foreign, name),
        OperationFault::GivenUp => silent(server),
    }
}

/// The reply to a renewal of several, each of which was asked about by itself. What one could not
/// be told spoils no other's answer: above all, not that it is gone.
///
/// # Errors
/// When none is gone and the connection was lost, so that all are to be asked about again; or when
/// nothing is known of any.
pub fn renewed_each<E: OrderedEngine>(
    live: &E::Live,
    renewals: &[Renewal],
    mut answers: Vec<Carried<Renewed, E>>,
) -> Carried<Vec<Renewed>, E> {
    if let Some(at) = fault_of_all(&answers) {
        return answers.swap_remove(at).map(|_| Vec::new());
    }
    if let Some(at) = telling(&answers)
        && let Err(fault) = std::mem::replace(&mut answers[at], Ok(Renewed::Unanswered))
    {
        let others = answers.iter().filter(|one| one.is_err()).count();
        let error = error_of::<E>(fault, live.server());
        warn_of_renewal(&renewals[at].claim.key, others, &error);
    }
    let of_each = |one: Result<_, _>| one.unwrap_or(Renewed::Unanswered);
    Ok(answers.into_iter().map(of_each).collect())
}

/// Which fault is the reply for all, if one is.
fn fault_of_all<R>(answers: &[Result<Renewed, OperationFault<R>>]) -> Option<usize> {
    let is_lost = |one: &Result<_, _>| matches!(one, Err(OperationFault::Lost(_)));
    let lost = answers.iter().position(is_lost);
    let mut known = answers.iter().flatten();
    match known.clone().next() {
        None => lost.or_else(|| telling(answers)),
        Some(_) if known.any(|one| *one == Renewed::Gone) => None,
        Some(_) => lost,
    }
}

/// Which fault says most: any other before a silence.
fn telling<R>(answers: &[Result<Renewed, OperationFault<R>>]) -> Option<usize> {
    let is_silent = |one: &Result<_, _>| matches!(one, Err(OperationFault::GivenUp));
    let says_more = |one: &Result<_, _>| one.is_err() && !is_silent(one);
    let first = answers.iter().position(says_more);
    first.or_else(|| answers.iter().position(is_silent))
}

/// By when each of several must be answered: time is left to tell what is known of the others.
#[must_use]
pub fn each_by(now: Instant, by: Instant) -> Instant {
    now + by.saturating_duration_since(now) * 9 / 10
}

/// The reply to an acquire. If nothing of it can be at the servers, then nothing has to be undone:
/// an undo would be refused as well, and be tried for as long as the client lives.
pub(super) fn without_effect_unless_made<T>(
    reply: Replied<T>,
    progress: &impl OperationProgress,
) -> Replied<T> {
    reply.map_err(|failure| match progress.may_have_made() {
        true => failure,
        false => Failure::without_effect(failure.error),
    })
}

/// Tells an operation that its caller is gone.
struct Caller<G: Fn()>(G);

impl<G: Fn()> Drop for Caller<G> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Carries an operation out in a task of the client, which goes on when nobody polls it. When its
/// caller has gone, it is told to `give_up`, and may no more make anything: the engine's undo has
/// begun.
pub(super) fn in_a_task<'s, L, T>(
    connecting: &'s Connecting<L>,
    give_up: impl Fn() + Send + 's,
    operation: impl Future<Output = Replied<T>> + Send + 'static,
) -> StoreFuture<'s, T>
where
    L: Send + Sync,
    T: Send + 'static,
{
    Box::pin(async move {
        let caller = Caller(give_up);
        let (answered, answer) = oneshot::channel();
        connecting.clock().spawn(async move {
            let _ = answered.send(operation.await);
        });
        let answer = answer.await;
        drop(caller);
        answer.unwrap_or_else(|_| {
            let error = gone(connecting.server(), "the client is closed");
            Err(Failure::unknown(error, connecting.link()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_one_hold_is_told_unless_all_are_to_be_asked_about_again() {
        let (known, gone) = (|| Ok(Renewed::Renewed), || Ok(Renewed::Gone));
        let lost = || Err(OperationFault::Lost(silent("a test")));
        let (refused, late) = (
            || Err(OperationFault::Refused(7)),
            || Err(OperationFault::GivenUp),
        );
        for (answers, decides) in [
            (vec![], None),
            (vec![known(), gone()], None),
            (vec![known(), refused()], None),
            (vec![late(), known()], None),
            (vec![refused(), lost(), gone()], None),
            (vec![refused(), lost(), known()], Some(1)),
            (vec![refused(), lost()], Some(1)),
            (vec![late(), refused()], Some(1)),
            (vec![late(), late()], Some(0)),
        ] {
            assert_eq!(fault_of_all(&answers), decides, "{answers:?}");
        }
    }
}
