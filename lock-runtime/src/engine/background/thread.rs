//! The client's own thread, with a current-thread runtime: connections, watchdog and undo task live
//! there.
//!
//! So a global client outlives each runtime of its callers. Code that blocks its executor does not
//! cost it its leases. A guard can be dropped anywhere.

use std::cell::Cell;
use std::io;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::undo::UndoTask;

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is a client's own thread, which nothing may block.
pub(crate) fn is_own() -> bool {
    IS_OWN.get()
}

/// Starts the thread. Send it the undo task: when that is done, so is the thread.
pub(crate) fn start() -> io::Result<(Handle, oneshot::Sender<UndoTask>)> {
    let (started, handle) = mpsc::channel();
    let (work, task) = oneshot::channel::<UndoTask>();
    std::thread::Builder::new()
        .name("lock-runtime".into())
        .spawn(move || {
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
    Ok((handle, work))
}
