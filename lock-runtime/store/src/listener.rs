//! [`Listener`]: what a store tells its client unasked.

use std::fmt;
use std::task::Waker;

use crate::client_message::ClientMessage;
use crate::key::LockKey;
use crate::link::Link;
use crate::owner::Owner;

/// What a store tells its client on its own. Hints and grants; a lost one costs time, never safety.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// A hold was handed to this owner, for its
    /// [`Acquire::first_lease`](crate::Acquire::first_lease). Told in the order of the replies of
    /// this link: before the reply to any command that the store carried out after the hand-over.
    /// The owner's task is woken when the wake-up is dropped, which the store does outside of its
    /// locks.
    fn granted(&self, link: Link, owner: Owner, token: Option<u64>) -> WakeUp;
    /// Messages may have been lost: everyone who waits rechecks.
    fn recheck(&self);
    /// The same for those who hear of their grants over this link: it is gone, and others are well.
    fn lost(&self, _link: Link) {
        self.recheck();
    }
    /// A hold of this key has ended, and was handed to nobody.
    fn freed(&self, _ended: Ended) {}
    /// Another client says something. Its key is one of this client's, as the client itself writes
    /// it.
    fn told(&self, _message: ClientMessage) {}
}

/// What a store tells of a hold that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What is free now.
    pub key: LockKey,
    /// Whose it was.
    pub owner: Owner,
    /// How many clients were told, the one that is told by this included.
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
