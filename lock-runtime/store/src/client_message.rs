//! [`ClientMessage`]: messages between the clients of one store.

use std::time::Duration;

use crate::key::LockKey;
use crate::owner::ClientId;

/// A message from one client to another, forwarded by the store. It may be lost, come twice, or be
/// forged by anybody who may publish there. Nothing about safety depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// A question: does the receiver hold this key?
    WhoHolds {
        /// The key in question.
        key: LockKey,
        /// The client that asks.
        asker: ClientId,
    },
    /// The answer to [`WhoHolds`](Self::WhoHolds).
    Holds {
        /// The key in question.
        key: LockKey,
        /// The client that answers.
        client: ClientId,
        /// That client's name: visible ASCII.
        name: Box<str>,
        /// How long it has held the key; `None` if it does not hold the key now.
        held_for: Option<Duration>,
    },
}

impl ClientMessage {
    /// The key that the message is about.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        match self {
            Self::WhoHolds { key, .. } | Self::Holds { key, .. } => key,
        }
    }

    /// The same message about another key.
    #[must_use]
    pub fn about(mut self, other: LockKey) -> Self {
        match &mut self {
            Self::WhoHolds { key, .. } | Self::Holds { key, .. } => *key = other,
        }
        self
    }
}
