//! [`Driver`]: the task that reads and writes a connection, and the time at which it runs.
//!
//! A connection that many tasks use should send their commands in one write. But a scheduler first
//! runs the task that was woken last. So the driver would write after each command, and client and
//! server would pay a system call for each.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::traffic::Traffic;

/// This many tasks that no worker has taken yet are a crowd. Answers behind them would be read too
/// late.
const CROWD: usize = 64;

/// Whether the caller's runtime has a crowd of ready tasks.
pub(crate) fn is_crowded() -> bool {
    let runtime = Handle::try_current();
    runtime.is_ok_and(|runtime| runtime.metrics().global_queue_depth() >= CROWD)
}

/// Ends a connection's task with its last user, even if data is still unsent.
#[derive(Debug)]
pub(crate) struct Driver(AbortHandle);

impl Driver {
    /// Starts the task on this runtime.
    pub(super) fn start(
        on: &Handle,
        driver: impl Future<Output = ()> + Send + 'static,
        traffic: Arc<Traffic>,
    ) -> Self {
        Self(on.spawn(behind_ready_tasks(driver, traffic)).abort_handle())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Each time a future is woken, polls it after the tasks that its worker has by then. Polls it at
/// once if there is a crowd of them, or only one request: another worker would be woken to take it.
async fn behind_ready_tasks<F: Future>(future: F, traffic: Arc<Traffic>) -> F::Output {
    let mut future = pin!(future);
    let mut is_behind = false;
    let runtime = Handle::current().metrics();
    std::future::poll_fn(|cx| {
        is_behind = !is_behind && traffic.is_shared() && runtime.global_queue_depth() < CROWD;
        if is_behind {
            // A task that wakes itself goes to the end of its worker's queue, if there is room.
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
            let traffic = Arc::<Traffic>::default();
            let _requests = [traffic.begin(), traffic.begin()];
            let driver = {
                let (wakes, sent) = (Arc::clone(&wakes), Arc::clone(&sent));
                async move {
                    loop {
                        tells.send(sent.swap(0, Ordering::Relaxed)).unwrap();
                        wakes.notified().await;
                    }
                }
            };
            let _driver = Driver::start(&Handle::current(), driver, Arc::clone(&traffic));
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
