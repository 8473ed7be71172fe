//! [`SqliteStore`]: a client's handle to its thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use lock_store::{
    Clock, Failure, Instant, LockKey, Mutex, Namespace, StoreError, StoreErrorKind, StoreFuture,
};
use tokio::sync::oneshot;

use crate::errors::busy;
use crate::job::{Begun, Call, Job};
use crate::lock::{self, Record};
use crate::mailbox::LINK;
use crate::step::Step;
use crate::worker::WorkerState;

/// A client's handle. The thread ends when it is closed or dropped.
pub(crate) struct SqliteStore {
    pub(crate) path: PathBuf,
    pub(crate) namespace: Namespace,
    pub(crate) clock: Clock,
    /// `None` when it is closed.
    pub(crate) jobs: Mutex<Option<Sender<Box<dyn Job>>>>,
    pub(crate) state: Arc<WorkerState>,
}

lock_store::show!(SqliteStore as it: path = it.path, namespace = it.namespace);

impl SqliteStore {
    /// The name of a lock, a latch or a bucket in the tables.
    pub(crate) fn name(&self, key: &LockKey) -> String {
        key.full_name(&self.namespace)
    }

    fn error(&self, kind: StoreErrorKind, what: &str) -> StoreError {
        StoreError::new(kind, format!("{}: {what}", self.path.display()))
    }

    /// Sends a request about one lock to the thread, now.
    pub(crate) fn call_lock<T, V>(&self, by: Instant, name: String, verb: V) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        V: Fn(&mut Record<'_, '_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.call(by, move |step| lock::with(step, &name, &verb))
    }

    /// Sends a request to the thread, now.
    pub(crate) fn call<T, V>(&self, by: Instant, verb: V) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        V: FnMut(&mut Step<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let begun = Begun::default();
        let call: Box<dyn Job> = Box::new(Call {
            verb,
            by,
            begun: begun.clone(),
            reply,
            value: None,
        });
        // Without the channel's other end, the request is dropped and its answer with it.
        if let Some(jobs) = &*self.jobs.lock() {
            let _ = jobs.send(call);
        }
        Box::pin(async move {
            let answered = self.clock.by(by, answer).await;
            if let Some(Ok(result)) = answered {
                return result;
            }
            // A request that was not begun never will be.
            let has_begun = !begun.is_first();
            let error = match (answered, has_begun) {
                (Some(_), _) => self.error(StoreErrorKind::Disconnected, "it is closed"),
                (None, true) => self
                    .error(
                        StoreErrorKind::Timeout,
                        "its disk is slow, or this process stood still",
                    )
                    .advise("look at the load of the machine and of its disk"),
                (None, false) => busy(&self.path),
            };
            Err(Failure::new(error, has_begun.then_some(LINK)))
        })
    }
}
