//! Operations of several steps go on when nobody polls them, and make nothing more when their
//! caller has given them up.
//!
//! The engine undoes an operation that was dropped: it looks for the child. That look is sent after
//! all that was sent before. So nothing may be made after the drop.

use std::future::Future;
use std::sync::Arc;

use lock_store::{Answer, Failure, Mutex, StoreFuture};
use tokio::sync::oneshot;

use crate::connection::{Live, SentRequest};
use crate::errors::{Fault, gone};
use crate::store::ZooKeeperStore;
use crate::wire::NodeRequest;

/// Whether the caller of an operation has given it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenUp(Arc<Mutex<bool>>);

impl GivenUp {
    pub(crate) fn is_so(&self) -> bool {
        *self.0.lock()
    }

    /// Sends a request that makes something, unless nobody wants it any more.
    pub(crate) fn send(&self, live: &Live, request: NodeRequest) -> Result<SentRequest, Fault> {
        // Held while it is sent.
        let given_up = self.0.lock();
        match *given_up {
            false => Ok(live.send(request)),
            true => Err(Fault::GivenUp),
        }
    }
}

/// Gives an operation up when it is dropped.
struct Caller(GivenUp);

impl Drop for Caller {
    fn drop(&mut self) {
        *self.0.0.lock() = true;
    }
}

impl ZooKeeperStore {
    /// Carries an operation out in a task of the client.
    pub(crate) fn in_a_task<T, F>(
        &self,
        operation: impl FnOnce(GivenUp) -> F + Send + 'static,
    ) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Answer<T>, Failure>> + Send + 'static,
    {
        Box::pin(async move {
            let given_up = GivenUp::default();
            let caller = Caller(given_up.clone());
            let (answered, answer) = oneshot::channel();
            let running = operation(given_up);
            self.clock.spawn(async move {
                let _ = answered.send(running.await);
            });
            let answer = answer.await;
            drop(caller);
            answer.unwrap_or_else(|_| {
                let error = gone(&self.settings.server, "the client is closed");
                Err(Failure::unknown(error, self.session.link()))
            })
        })
    }
}
