//! Operations of several steps go on when nobody polls them, and make nothing more when their
//! caller has given them up.
//!
//! The engine undoes an operation that was dropped: it looks for the child. That look is sent after
//! all that was sent before. So nothing may be made after the drop.

use std::collections::HashSet;
use std::sync::Arc;

use lock_store::Mutex;
use lock_store::ordered::OperationProgress;

use crate::connection::{Live, SentRequest};
use crate::errors::Fault;
use crate::wire::NodeRequest;

/// Whether the caller of an operation has given it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenUp(Arc<Mutex<SentSoFar>>);

#[derive(Debug, Default)]
struct SentSoFar {
    is_given_up: bool,
    /// Something may have been made, whatever came of the reply.
    has_sent: bool,
    /// The children whose end was sent.
    ends: HashSet<String>,
}

impl GivenUp {
    pub(crate) fn is_so(&self) -> bool {
        self.0.lock().is_given_up
    }

    /// Whether an earlier attempt may have made something.
    pub(crate) fn has_sent(&self) -> bool {
        self.0.lock().has_sent
    }

    /// Notes that the end of this child is sent. True if an earlier attempt has sent it.
    pub(crate) fn note_end(&self, path: String) -> bool {
        !self.0.lock().ends.insert(path)
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

impl OperationProgress for GivenUp {
    fn give_up(&self) {
        self.0.lock().is_given_up = true;
    }
}
