//! [`Driver`]: the task that reads and writes a connection, and when it does.
//!
//! A connection that many tasks use should write what they have in one piece. But a scheduler runs
//! the task that was woken last first: the driver would write after each command, and client and
//! server would pay a system call for each.

use std::pin::pin;
use std::task::Poll;

use tokio::task::AbortHandle;

/// Ends the task of a connection with its last user, whatever is still to be written.
#[derive(Debug)]
pub(crate) struct Driver(AbortHandle);

impl Driver {
    /// Starts it, on the caller's runtime.
    pub(super) fn start(driver: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(behind_ready_tasks(driver)).abort_handle())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Polls a future, each time it is woken, behind the tasks that are ready by then. If none are, that
/// is at once.
async fn behind_ready_tasks<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut is_behind = false;
    std::future::poll_fn(|cx| {
        is_behind = !is_behind;
        if is_behind {
            // Whatever wakes itself goes to the end of its worker's queue.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        future.as_mut().poll(cx)
    })
    .await
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::{Notify, mpsc};

    use super::*;

    #[test]
    fn a_driver_finds_what_all_ready_tasks_have_sent() {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).build().unwrap();
        let on_the_worker = runtime.spawn(async {
            let (wakes, sent) = (Arc::<Notify>::default(), Arc::<AtomicU32>::default());
            let (tells, mut told) = mpsc::unbounded_channel();
            let _driver = Driver::start({
                let (wakes, sent) = (Arc::clone(&wakes), Arc::clone(&sent));
                async move {
                    loop {
                        tells.send(sent.swap(0, Ordering::Relaxed)).unwrap();
                        wakes.notified().await;
                    }
                }
            });
            assert_eq!(told.recv().await, Some(0), "it waits");
            // After some tasks in a row that were woken last, a worker takes the first.
            tokio::task::yield_now().await;
            for _ in 0..10 {
                let (wakes, sent) = (Arc::clone(&wakes), Arc::clone(&sent));
                tokio::spawn(async move {
                    sent.fetch_add(1, Ordering::Relaxed);
                    wakes.notify_one();
                });
            }
            assert_eq!(told.recv().await, Some(10));
        });
        runtime.block_on(on_the_worker).unwrap();
    }
}
