//! [`ClientMessage`]: what clients of one store say to each other.

use std::time::Duration;

use crate::key::LockKey;
use crate::owner::ClientId;

/// What one client says to another by way of the store. A message may be lost, come twice, or be
/// forged by anybody who may publish there: nothing about safety depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// Who has this key?
    WhoHolds {
        /// What is held.
        key: LockKey,
        /// Who wants to know.
        asker: ClientId,
    },
    /// The answer.
    Holds {
        /// What is held.
        key: LockKey,
        /// Who answers.
        client: ClientId,
        /// Its name: visible ASCII.
        name: Box<str>,
        /// For how long it has held the key; `None` if it does not hold the key now.
        held_for: Option<Duration>,
    },
}

impl ClientMessage {
    /// What it is about.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        match self {
            Self::WhoHolds { key, .. } | Self::Holds { key, .. } => key,
        }
    }

    /// The same about another key.
    #[must_use]
    pub fn about(mut self, other: LockKey) -> Self {
        match &mut self {
            Self::WhoHolds { key, .. } | Self::Holds { key, .. } => *key = other,
        }
        self
    }
}
