//! A body under a guard, from its first poll to the release.
//!
//! Two futures, written by hand because an `async fn` would hold the body twice: [`GuardedBody`]
//! ends the body when the lock is lost, [`ThenRelease`] ends the hold when the body is gone. Polled
//! after they were ready, they stay pending: the contract of futures leaves that open.

use std::fmt;
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use lock_store::Mutex;
use pin_project_lite::pin_project;
use tokio::sync::futures::OwnedNotified;

use super::failure::is_failure;
use super::guard::Guard;
use crate::config::OnLost;
use crate::engine::reentrancy::call_chain::{self, Frame};
use crate::error::{LockError, LostReason};
use crate::observe::{BodySpan, Outcome};

/// Where a body and what runs it find the lock.
///
/// A body may ask for its lock itself, so that its function's parameters are its own from the
/// beginning. Then it waits in `fill`, and is polled further only under the guard.
#[derive(Debug, Default)]
pub struct Slot {
    guard: OnceLock<Guard>,
    refusal: OnceLock<Mutex<Option<LockError>>>,
}

impl Slot {
    /// Without a lock.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            guard: OnceLock::new(),
            refusal: OnceLock::new(),
        }
    }

    /// With a lock.
    pub(crate) fn put(&self, guard: Guard) -> &Guard {
        self.guard.get_or_init(|| guard)
    }

    /// Stores the outcome of the request. Resolves to the guard when the body may go on. After an
    /// error it never resolves: the runner drops the body.
    pub(crate) fn fill(&self, acquired: Result<Guard, LockError>) -> impl Future<Output = &Guard> {
        match acquired {
            Ok(guard) => drop(self.guard.set(guard)),
            Err(error) => self.set_refusal(error),
        }
        // Pending once, so that `GuardedBody` sees the guard and begins its watch before the body
        // goes on.
        let mut is_seen = false;
        future::poll_fn(move |_| match self.guard.get() {
            Some(guard) if std::mem::replace(&mut is_seen, true) => Poll::Ready(guard),
            _ => Poll::Pending,
        })
    }

    /// Never resolves: the body is dropped.
    pub(crate) async fn refuse<T>(&self, error: LockError) -> T {
        self.set_refusal(error);
        future::pending().await
    }

    fn set_refusal(&self, error: LockError) {
        self.refusal.get_or_init(|| Mutex::new(Some(error)));
    }

    fn take_refusal(&self) -> Option<LockError> {
        self.refusal.get()?.lock().take()
    }
}

pin_project! {
    /// Runs a body, from the grant on inside the hold, and stops it when the hold is lost.
    ///
    /// Unless [`OnLost::Continue`], the hold is checked before each poll of the body. So a process
    /// that was stopped past its lease runs no further line of the body, except destructors. The
    /// hold is checked once more right after the last poll: a body that blocked its thread past the
    /// lease gives [`LockError::Lost`], whatever it returned.
    ///
    /// A body whose hold is shared, by a nested request, is also stopped when the outer guard has
    /// ended. That one waits for a poll that is under way.
    ///
    /// # Cancel safety
    /// Dropping this drops the body.
    #[must_use = "futures do nothing unless polled"]
    pub struct GuardedBody<'s, F> {
        slot: &'s Slot,
        #[pin]
        body: Option<F>,
        #[pin]
        watch: Option<Watch<'s>>,
    }
}

pin_project! {
    /// What a body under a guard is watched by.
    struct Watch<'s> {
        guard: &'s Guard,
        frame: Arc<Frame>,
        #[pin]
        lost: Option<OwnedNotified>,
        span: BodySpan,
    }
}

impl<F> fmt::Debug for GuardedBody<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody")
            .field("slot", self.slot)
            .finish_non_exhaustive()
    }
}

impl<'s, F> GuardedBody<'s, F> {
    pub(crate) fn new(slot: &'s Slot, body: F) -> Self {
        Self {
            slot,
            body: Some(body),
            watch: None,
        }
    }
}

impl<F: Future> Future for GuardedBody<'_, F> {
    type Output = Result<F::Output, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let polled = match (this.watch.as_mut().as_pin_mut(), this.slot.guard.get()) {
                (Some(watch), _) => watch.poll_body(this.body.as_mut(), cx),
                (None, Some(guard)) => {
                    this.watch.set(Some(Watch::new(guard)));
                    continue;
                }
                (None, None) => poll_alone(this.body.as_mut(), cx),
            };
            if let Some(error) = this.slot.take_refusal() {
                this.body.set(None);
                return Poll::Ready(Err(error));
            }
            let granted_now = this.watch.is_none() && this.slot.guard.get().is_some();
            if polled.is_ready() || !granted_now {
                return polled;
            }
        }
    }
}

/// While it asks for its lock.
fn poll_alone<F: Future>(
    mut body: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, LockError>> {
    let Some(running) = body.as_mut().as_pin_mut() else {
        return Poll::Pending;
    };
    let output = ready!(running.poll(cx));
    body.set(None);
    Poll::Ready(Ok(output))
}

impl<'s> Watch<'s> {
    fn new(guard: &'s Guard) -> Self {
        Self {
            guard,
            frame: guard.frame(),
            lost: None,
            span: BodySpan::new(guard.key(), guard.waited(), guard.fencing_token()),
        }
    }

    fn poll_body<F: Future>(
        mut self: Pin<&mut Self>,
        mut body: Pin<&mut Option<F>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<F::Output, LockError>> {
        let guard = self.guard;
        let cancels = guard.on_lost() == OnLost::Cancel;
        loop {
            let mut this = self.as_mut().project();
            if cancels {
                // Registered before the hold is asked, so that no loss falls between the two.
                if this.lost.is_none() {
                    this.lost.set(Some(guard.hold().notified()));
                }
                if let Some(reason) = guard.loss() {
                    let within = this.span.enter();
                    body.set(None);
                    drop(within);
                    this.span.end(Outcome::Lost);
                    return Poll::Ready(Err(guard.lost_error(reason)));
                }
            }
            let polls = guard.enter_polling();
            if cancels && guard.is_nested() && polls.is_none() {
                // The outer guard has ended at this very moment.
                continue;
            }
            let Some(running) = body.as_mut().as_pin_mut() else {
                return Poll::Pending;
            };
            let within = this.span.enter();
            let polled = call_chain::within(this.frame, || running.poll(cx));
            drop(within);
            // What ended before this does so now. The poll was under the lock all the same.
            drop(polls);
            if let Poll::Ready(output) = polled {
                body.set(None);
                return Poll::Ready(self.end_body::<F>(output, cancels));
            }
            let Some(lost) = this.lost.as_mut().as_pin_mut() else {
                return Poll::Pending;
            };
            ready!(lost.poll(cx));
            this.lost.set(None);
        }
    }

    /// What comes of a body that has ended: its output, unless the hold was lost before.
    fn end_body<F: Future>(
        self: Pin<&mut Self>,
        output: F::Output,
        cancels: bool,
    ) -> Result<F::Output, LockError> {
        let (guard, lost) = (self.guard, self.guard.hold().loss());
        if lost.is_none() && guard.waits_for_success() && !is_failure(&output) {
            guard.note_success();
        }
        self.project().span.end(match lost {
            Some(_) => Outcome::EndedLate,
            None => Outcome::Ended,
        });
        match lost {
            Some(reason) if cancels => {
                drop(output);
                Err(ended_late::<F>(guard, reason))
            }
            _ => Ok(output),
        }
    }
}

/// After a body that went on to its end when the hold was lost.
fn ended_late<F: Future>(guard: &Guard, reason: LostReason) -> LockError {
    tracing::warn!(
        key = %guard.key().shortened(), output = std::any::type_name::<F::Output>(),
        "a body ended after its lock was lost, and what it returned is dropped"
    );
    LockError::lost_after_body(guard.key().clone(), reason)
}

/// A release under way.
type ReleaseFuture<'g> = Pin<Box<dyn Future<Output = Result<(), LockError>> + Send + 'g>>;

pin_project! {
    /// Runs a future that may get a lock, drops it at its end, ends the hold, and then returns the
    /// output. A failed release never replaces the output, and a lost hold is not waited for.
    ///
    /// # Cancel safety
    /// Dropping this drops the future; dropping the guard then releases in the background.
    #[must_use = "futures do nothing unless polled"]
    pub struct ThenRelease<'s, F, T> {
        slot: &'s Slot,
        #[pin]
        body: Option<F>,
        output: Option<T>,
        release: Option<ReleaseFuture<'s>>,
    }
}

impl<F, T> fmt::Debug for ThenRelease<'_, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThenRelease")
            .field("slot", self.slot)
            .finish_non_exhaustive()
    }
}

impl<'s, F, T> ThenRelease<'s, F, T> {
    pub(crate) fn new(slot: &'s Slot, body: F) -> Self {
        Self {
            slot,
            body: Some(body),
            output: None,
            release: None,
        }
    }
}

impl<T, F: Future<Output = T>> Future for ThenRelease<'_, F, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(body) = this.body.as_mut().as_pin_mut() {
            *this.output = Some(ready!(body.poll(cx)));
            this.body.set(None);
            *this.release = this.slot.guard.get().and_then(end);
        }
        if let Some(release) = this.release.as_mut() {
            // A release that fails is logged, counted and repeated where it happens.
            let _ = ready!(release.as_mut().poll(cx));
            *this.release = None;
        }
        match this.output.take() {
            Some(output) => Poll::Ready(output),
            None => Poll::Pending,
        }
    }
}

/// Ends the hold: what has to be waited for.
fn end(guard: &Guard) -> Option<ReleaseFuture<'_>> {
    if guard.on_lost() == OnLost::Cancel && guard.loss().is_some() {
        guard.finish_in_background();
        return None;
    }
    Some(Box::pin(guard.finish()))
}

/// Runs a body inside a hold, stops it when the hold is lost, and releases.
pub(crate) fn run<F: Future>(
    slot: &Slot,
    body: F,
) -> impl Future<Output = Result<F::Output, LockError>> {
    ThenRelease::new(slot, GuardedBody::new(slot, body))
}
