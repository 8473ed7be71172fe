//! [`Listener`]: the messages that a store sends to its client unasked.

use std::fmt;
use std::sync::Weak;
use std::task::Waker;

use crate::client_message::ClientMessage;
use crate::error::StoreError;
use crate::instant::Instant;
use crate::key::LockKey;
use crate::link::Link;
use crate::owner::Owner;

/// A client's receiver of messages from the store: hints and grants. A lost message costs time,
/// never safety.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// A hold was handed over. Dropping the wake-up wakes the owner's task. The store drops it
    /// outside of its own mutexes.
    fn on_granted(&self, grant: HandedOver) -> WakeUp;
    /// Messages may have been lost: all waiters must recheck.
    fn recheck(&self);
    /// The link is gone: waiters that hear of their grants over it must recheck. Other links are
    /// intact.
    fn on_lost(&self, _link: Link) {
        self.recheck();
    }
    /// A hold of this key has ended, and the key was handed to no one.
    fn on_freed(&self, _ended: Ended) {}
    /// A connection to a server is there.
    fn on_connected(&self, _server: &str) {}
    /// A connection to a server is gone.
    fn on_disconnected(&self, _server: &str, _error: &StoreError) {}
    /// A message from another client. Its key is as this client writes it.
    fn on_message(&self, _message: ClientMessage) {}
}

/// A client that is gone hears nothing.
impl Listener for Weak<dyn Listener> {
    fn on_granted(&self, grant: HandedOver) -> WakeUp {
        let listener = self.upgrade();
        listener.map_or_else(WakeUp::default, |it| it.on_granted(grant))
    }

    fn recheck(&self) {
        if let Some(listener) = self.upgrade() {
            listener.recheck();
        }
    }

    fn on_lost(&self, link: Link) {
        if let Some(listener) = self.upgrade() {
            listener.on_lost(link);
        }
    }

    fn on_freed(&self, ended: Ended) {
        if let Some(listener) = self.upgrade() {
            listener.on_freed(ended);
        }
    }

    fn on_connected(&self, server: &str) {
        if let Some(listener) = self.upgrade() {
            listener.on_connected(server);
        }
    }

    fn on_disconnected(&self, server: &str, error: &StoreError) {
        if let Some(listener) = self.upgrade() {
            listener.on_disconnected(server, error);
        }
    }

    fn on_message(&self, message: ClientMessage) {
        if let Some(listener) = self.upgrade() {
            listener.on_message(message);
        }
    }
}

/// A hold that was handed to its owner, for its
/// [`Acquire::first_lease`](crate::Acquire::first_lease); or a latch that has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandedOver {
    /// The owner that waited.
    pub owner: Owner,
    /// The first of the [fencing tokens](crate::Acquire::tokens) that were asked for; all of them
    /// are reserved. Of a latch: the generation that opened.
    pub token: Option<u64>,
    /// How the message is to be trusted.
    pub trust: Trust,
}

/// How the message of a hand-over is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// By the order of this link: the message comes before the reply to any command that the store
    /// carried out after the hand-over. So the hold is newer than the owner's last reply over it.
    Order(Link),
    /// The hold can be trusted until then, whenever the message comes.
    Until(Instant),
    /// Not at all. The owner asks again, and believes that reply. The link that it came over.
    Ask(Link),
}

impl HandedOver {
    /// A hold of this owner.
    #[must_use]
    pub fn new(owner: Owner, token: Option<u64>, trust: Trust) -> Self {
        Self {
            owner,
            token,
            trust,
        }
    }
}

/// A message that a hold has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// The key that is free now.
    pub key: LockKey,
    /// The owner of the hold.
    pub owner: Owner,
    /// The number of clients that got this message, including this one.
    pub told: u32,
}

impl Ended {
    /// The end of this owner's hold, and how many clients are told.
    #[must_use]
    pub fn new(key: LockKey, owner: Owner, told: u32) -> Self {
        Self { key, owner, told }
    }
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
