//! Operations of several steps go on when nobody polls them, and make nothing more when their
//! caller has given them up.
//!
//! The engine undoes an operation that was dropped: it looks for the child. That look is sent after
//! all that was sent before. So nothing may be made after the drop.

use std::collections::HashSet;
use std::sync::Arc;

use lock_store::Mutex;
use lock_store::ordered::OperationProgress;

use crate::connection::{Live, NodeReply, SentRequest};
use crate::errors::{Fault, code};
use crate::wire::{MultiPart, NodeRequest};

/// What the attempts of one operation have in common: whether its caller has given it up, and what
/// may be at the servers of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptsProgress(Arc<Mutex<SentSoFar>>);

#[derive(Debug, Default)]
struct SentSoFar {
    is_given_up: bool,
    /// How many requests may have made something, or have found what was made.
    made: u32,
    /// The children whose end was sent.
    ends: HashSet<String>,
}

impl AttemptsProgress {
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.lock().is_given_up
    }

    /// Something of the operation is there, or may be.
    pub(crate) fn note_may_have_made(&self) {
        self.0.lock().made += 1;
    }

    /// A request that was sent to make something has made nothing, if its reply says so.
    fn note_reply<T>(&self, reply: &Result<T, Fault>) {
        if matches!(reply, Err(Fault::Refused(code)) if code::is_beforehand(*code)) {
            let mut progress = self.0.lock();
            progress.made = progress.made.saturating_sub(1);
        }
    }

    /// Notes that the end of this child is sent. True if an earlier attempt has sent it.
    pub(crate) fn note_end(&self, path: String) -> bool {
        !self.0.lock().ends.insert(path)
    }

    /// Sends a request that makes something, unless nobody wants it any more.
    pub(crate) fn send(&self, live: &Live, request: NodeRequest) -> Result<MakingRequest, Fault> {
        // Held while it is sent.
        let mut progress = self.0.lock();
        match progress.is_given_up {
            false => {
                progress.made += 1;
                Ok(MakingRequest {
                    sent: live.send(request),
                    progress: self.clone(),
                })
            }
            true => Err(Fault::GivenUp),
        }
    }
}

impl OperationProgress for AttemptsProgress {
    fn give_up(&self) {
        self.0.lock().is_given_up = true;
    }

    fn may_have_made(&self) -> bool {
        self.0.lock().made > 0
    }
}

/// A request that makes something, and was sent.
#[derive(Debug)]
pub(crate) struct MakingRequest {
    sent: SentRequest,
    progress: AttemptsProgress,
}

impl MakingRequest {
    pub(crate) async fn reply(self) -> Result<NodeReply, Fault> {
        let reply = self.sent.reply().await;
        self.progress.note_reply(&reply);
        reply
    }

    /// What a transaction has made. All of it was carried out, or nothing.
    pub(crate) async fn parts(self) -> Result<Vec<MultiPart>, Fault> {
        let parts = self.sent.reply().await.and_then(|reply| reply.parts());
        self.progress.note_reply(&parts);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_refused_beforehand_has_made_nothing() {
        let marshalling = -5;
        for (code, may_have_made) in [
            (code::NO_AUTH, false),
            (code::NO_NODE, false),
            (code::QUOTA, false),
            (marshalling, true),
            // An old server refuses all that is pending, whatever it has done of it.
            (code::UNIMPLEMENTED, true),
            (i32::MIN, true),
        ] {
            let progress = AttemptsProgress::default();
            progress.note_may_have_made();
            progress.note_reply::<()>(&Err(Fault::Refused(code)));
            assert_eq!(progress.may_have_made(), may_have_made, "{code}");
        }
    }
}
