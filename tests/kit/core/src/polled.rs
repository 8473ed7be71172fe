//! Drops a future at a chosen point.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

/// Polls a future at most `polls` times, each time after it was woken, and then drops it. Returns
/// its output if it finished.
pub async fn polled<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx: &mut Context<'_>| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
