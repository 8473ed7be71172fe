//! [`Run`]: a body under a guard, from its first poll to the release.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::sync::futures::OwnedNotified;

use super::guard::Guard;
use crate::config::OnLost;
use crate::engine::reentrancy::call_chain::{self, Frame};
use crate::error::{LockError, LostReason};
use crate::observe::{BodySpan, Outcome};

pin_project! {
    /// Runs a body inside a hold, stops it when the hold is lost, releases, and then returns the
    /// body's output.
    ///
    /// Unless [`OnLost::Continue`], the hold is checked before each poll of the body. So a process
    /// that was stopped past its lease runs no further line of the body, except destructors. The
    /// hold is checked once more right after the last poll: a body that blocked its thread past the
    /// lease gives [`LockError::Lost`], whatever it returned. A failed release never replaces what
    /// the body returned.
    ///
    /// A body whose hold is shared, by a nested request, is also stopped when the outer guard has
    /// ended. That one waits for a poll that is under way.
    ///
    /// Written by hand because an `async fn` would hold the body twice.
    ///
    /// # Cancel safety
    /// Dropping this drops the body; dropping the guard then releases in the background.
    #[must_use = "futures do nothing unless polled"]
    pub struct Run<'g, F: Future> {
        guard: &'g Guard,
        frame: Arc<Frame>,
        #[pin]
        body: Option<F>,
        #[pin]
        lost: Option<OwnedNotified>,
        output: Option<F::Output>,
        span: BodySpan,
        release: Option<Pin<Box<dyn Future<Output = Result<(), LockError>> + Send + 'g>>>,
    }
}

impl<F: Future> fmt::Debug for Run<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("guard", self.guard)
            .finish_non_exhaustive()
    }
}

impl<'g, F: Future> Run<'g, F> {
    pub(crate) fn new(guard: &'g Guard, body: F) -> Self {
        let frame = guard.frame();
        let span = BodySpan::new(guard.key(), guard.waited(), guard.fencing_token());
        Self {
            guard,
            frame,
            span,
            body: Some(body),
            lost: None,
            output: None,
            release: None,
        }
    }
}

impl<F: Future> Future for Run<'_, F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (guard, hold) = (*this.guard, this.guard.hold());
        while this.body.is_some() {
            let cancels = guard.on_lost() == OnLost::Cancel;
            if cancels {
                // Registered before the hold is asked, so that no loss falls between the two.
                if this.lost.is_none() {
                    this.lost.set(Some(hold.notified()));
                }
                if let Some(reason) = guard.loss() {
                    let within = this.span.enter();
                    let error = stop(guard, this.body, reason);
                    drop(within);
                    this.span.end(Outcome::Lost);
                    return Poll::Ready(Err(error));
                }
            }
            let polls = guard.polls_body();
            if cancels && guard.is_nested() && polls.is_none() {
                // The outer guard has ended at this very moment.
                continue;
            }
            let Some(body) = this.body.as_mut().as_pin_mut() else {
                break;
            };
            let within = this.span.enter();
            let polled = call_chain::within(this.frame, || body.poll(cx));
            drop(within);
            match polled {
                Poll::Ready(output) => {
                    this.body.set(None);
                    // An outer guard that has ended meanwhile is released now. All of the body was
                    // under the lock.
                    drop(polls);
                    let lost = hold.loss();
                    this.span.end(match lost {
                        Some(_) => Outcome::EndedLate,
                        None => Outcome::Ended,
                    });
                    if cancels && let Some(reason) = lost {
                        drop(output);
                        return Poll::Ready(Err(ended_late::<F>(guard, reason)));
                    }
                    *this.output = Some(output);
                    *this.release = Some(Box::pin(guard.finish()));
                }
                Poll::Pending if cancels => {
                    if let Some(lost) = this.lost.as_mut().as_pin_mut() {
                        ready!(lost.poll(cx));
                        this.lost.set(None);
                    }
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        if let Some(release) = this.release.as_mut() {
            // A release that fails is logged, counted and repeated where it happens.
            let _ = ready!(release.as_mut().poll(cx));
            *this.release = None;
        }
        match this.output.take() {
            Some(output) => Poll::Ready(Ok(output)),
            // Polled after it was ready, which the contract of futures leaves open.
            None => Poll::Pending,
        }
    }
}

/// Ends the hold without waiting, after a body that went on to its end when the hold was lost.
fn ended_late<F: Future>(guard: &Guard, reason: LostReason) -> LockError {
    tracing::warn!(
        key = %guard.key().shortened(), output = std::any::type_name::<F::Output>(),
        "a body ended after its lock was lost, and what it returned is dropped"
    );
    guard.finish_in_background();
    LockError::lost_after_body(guard.hold().key().clone(), reason)
}

/// Drops the body and ends the hold without waiting.
fn stop<F>(guard: &Guard, mut body: Pin<&mut Option<F>>, reason: LostReason) -> LockError {
    body.set(None);
    guard.finish_in_background();
    guard.hold().lost_error(reason)
}
