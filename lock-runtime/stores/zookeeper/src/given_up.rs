//! Operations of several steps go on when nobody polls them, and make nothing more when their
//! caller has given them up.
//!
//! The engine undoes an operation that was dropped: it looks for the child. That look is sent after
//! all that was sent before. So nothing may be made after the drop.

use std::future::Future;
use std::sync::Arc;

use lock_store::ordered::in_a_task;
use lock_store::{Answer, Failure, Mutex, StoreFuture};

use crate::connection::{Live, SentRequest};
use crate::errors::Fault;
use crate::store::ZooKeeperStore;
use crate::wire::NodeRequest;

/// Whether the caller of an operation has given it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenUp(Arc<Mutex<SentSoFar>>);

#[derive(Debug, Default)]
struct SentSoFar {
    is_given_up: bool,
    /// Something may have been made, whatever came of the reply.
    has_sent: bool,
}

impl GivenUp {
    pub(crate) fn is_so(&self) -> bool {
        self.0.lock().is_given_up
    }

    /// Whether an earlier attempt may have made something.
    pub(crate) fn has_sent(&self) -> bool {
        self.0.lock().has_sent
    }

    /// Sends a request that makes something, unless nobody wants it any more.
    pub(crate) fn send(&self, live: &Live, request: NodeRequest) -> Result<SentRequest, Fault> {
        // Held while it is sent.
        let mut progress = self.0.lock();
        match progress.is_given_up {
            false => {
                progress.has_sent = true;
                Ok(live.send(request))
            }
            true => Err(Fault::GivenUp),
        }
    }
}

impl ZooKeeperStore {
    /// Carries an operation out in a task of the client.
    pub(crate) fn in_a_task<T, F>(&self, operation: impl FnOnce(GivenUp) -> F) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Answer<T>, Failure>> + Send + 'static,
    {
        let given_up = GivenUp::default();
        let running = operation(given_up.clone());
        let give_up = move || given_up.0.lock().is_given_up = true;
        in_a_task(&self.session.connecting, give_up, running)
    }
}
