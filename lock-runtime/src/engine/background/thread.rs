//! The client's own thread, with a current-thread runtime: connections, watchdog and cleanup live
//! there.
//!
//! So a global client outlives each runtime of its callers. Code that blocks its executor does not
//! cost it its leases. A guard can be dropped anywhere.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use lock_store::{Instant, Mutex};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::cleanup::CleanupTask;

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
    static UNAWAITED: Unawaited = const { Unawaited(RefCell::new(Vec::new())) };
}

/// Whether this is a client's own thread, which nothing may block.
pub(crate) fn is_own() -> bool {
    IS_OWN.get()
}

/// Starts the thread. Send it the cleanup task: when that is done, so is the thread.
pub(crate) fn start(
    patience: Duration,
) -> io::Result<(Handle, oneshot::Sender<CleanupTask>, ThreadEnd)> {
    let fork = forkguard::Guard::try_new().map_err(io::Error::other)?;
    let (runs, ended) = mpsc::channel::<Infallible>();
    let (started, handle) = mpsc::channel();
    let (work, task) = oneshot::channel::<CleanupTask>();
    std::thread::Builder::new()
        .name("lock-runtime".into())
        .spawn(move || {
            let _runs = runs;
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(error))),
            };
            IS_OWN.set(true);
            if started.send(Ok(runtime.handle().clone())).is_err() {
                return;
            }
            runtime.block_on(async {
                if let Ok(task) = task.await {
                    task.run().await;
                }
            });
            // Ends the other tasks; a name look-up under way is not waited for.
            runtime.shutdown_background();
        })?;
    let handle = handle
        .recv()
        .map_err(|_| io::Error::other("the lock-runtime thread did not start"))??;
    let end = ThreadEnd {
        fork,
        ended: Mutex::new(Some(RestOfWork { ended, patience })),
    };
    Ok((handle, work, end))
}

/// A runtime that has ended, and drops each task that it is given: for a client without a thread.
/// Without drivers it opens nothing, so that nothing is there that could fail.
pub(crate) fn ended_runtime() -> Handle {
    loop {
        if let Ok(runtime) = Builder::new_current_thread().build() {
            let handle = runtime.handle().clone();
            // It may be dropped in an executor, where it must not wait for anything.
            runtime.shutdown_background();
            return handle;
        }
    }
}

/// Waits, when the last of a client is dropped, for what is under way: a release must not be lost
/// with the process that ends right after it. For one command's time at most, and never in an
/// executor. There the wait is put off to the end of the thread, which is the end of the process
/// too where that runs the destructors of its thread's variables.
#[derive(Debug)]
pub(crate) struct ThreadEnd {
    /// Tells a copy in a child process.
    fork: forkguard::Guard,
    ended: Mutex<Option<RestOfWork>>,
}

/// A thread that has nothing to do but to end its work.
#[derive(Debug)]
struct RestOfWork {
    /// Disconnected when it has ended.
    ended: Receiver<Infallible>,
    patience: Duration,
}

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        // The thread of a copy in a child process is not there.
        if is_own() || self.fork.detected_fork() {
            return;
        }
        let Some(rest) = self.ended.lock().take() else {
            return;
        };
        match Handle::try_current() {
            Err(_) => rest.wait(Instant::now()),
            // Fails at the end of a thread, where nothing is put off any more.
            Ok(_) => _ = UNAWAITED.try_with(|unawaited| unawaited.put_off(rest)),
        }
    }
}

impl RestOfWork {
    /// Says nothing in the log: what writes it may be gone already at the end of a thread.
    fn wait(&self, since: Instant) {
        let left = self.patience.saturating_sub(since.elapsed());
        let _ = self.ended.recv_timeout(left);
    }

    fn is_over(&self) -> bool {
        matches!(self.ended.try_recv(), Err(TryRecvError::Disconnected))
    }
}

/// Clients that ended in an executor of this thread.
struct Unawaited(RefCell<Vec<RestOfWork>>);

impl Unawaited {
    fn put_off(&self, rest: RestOfWork) {
        let mut all = self.0.borrow_mut();
        all.retain(|earlier| !earlier.is_over());
        all.push(rest);
    }
}

impl Drop for Unawaited {
    fn drop(&mut self) {
        let since = Instant::now();
        for rest in self.0.get_mut() {
            rest.wait(since);
        }
    }
}
