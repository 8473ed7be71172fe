//! [`Listener`]: the messages that a store sends to its client unasked.

use std::fmt;
use std::task::Waker;

use crate::client_message::ClientMessage;
use crate::error::StoreError;
use crate::key::LockKey;
use crate::link::Link;
use crate::owner::Owner;

/// A client's receiver of messages from the store: hints and grants. A lost message costs time,
/// never safety.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// A hold was handed to this owner, for its
    /// [`Acquire::first_lease`](crate::Acquire::first_lease). Called in the order of the replies on
    /// this link: before the reply to any command that the store carried out after the hand-over.
    /// Dropping the wake-up wakes the owner's task. The store drops it outside of its own mutexes.
    fn granted(&self, link: Link, owner: Owner, token: Option<u64>) -> WakeUp;
    /// Messages may have been lost: all waiters must recheck.
    fn recheck(&self);
    /// The same for waiters that hear of their grants over this link. The link is gone, and others
    /// are intact.
    fn lost(&self, _link: Link) {
        self.recheck();
    }
    /// A hold of this key has ended, and the key was handed to no one.
    fn freed(&self, _ended: Ended) {}
    /// A connection to a server is there.
    fn connected(&self, _server: &str) {}
    /// A connection to a server is gone.
    fn disconnected(&self, _server: &str, _error: &StoreError) {}
    /// A message from another client. Its key is as this client writes it.
    fn told(&self, _message: ClientMessage) {}
}

/// A message that a hold has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The key that is free now.
    pub key: LockKey,
    /// The owner of the hold.
    pub owner: Owner,
    /// The number of clients that got this message, including this one.
    pub told: u32,
}

/// Wakes a task when it is dropped.
#[derive(Debug, Default)]
pub struct WakeUp(pub Option<Waker>);

impl Drop for WakeUp {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.wake();
        }
    }
}
