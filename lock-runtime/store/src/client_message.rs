//! [`ClientMessage`]: messages between the clients of one store.

use std::time::Duration;

use crate::key::LockKey;
use crate::owner::{ClientId, Owner};

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
    /// A demand: the receiver shall stop what runs under this hold, and release it. Whoever knows
    /// the owner token can read the store, and could take the lock away by force.
    Revoke {
        /// The key in question.
        key: LockKey,
        /// The client that demands it.
        asker: ClientId,
        /// The hold, by its owner as the store shows it.
        owner: Owner,
        /// Only if the receiver has this name.
        only: Option<Box<str>>,
    },
    /// The answer to [`Revoke`](Self::Revoke).
    Revoking {
        /// The key in question.
        key: LockKey,
        /// The hold that was asked for.
        owner: Owner,
        /// The name of the client that answers: visible ASCII.
        name: Box<str>,
        /// What it does.
        answer: RevokeAnswer,
    },
}

/// What a client that is told to give up a hold does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevokeAnswer {
    /// The hold is lost, and released when its body or guard has been dropped.
    Stops,
    /// It does not have this hold (any more).
    HasNone,
    /// It was set up to refuse.
    Refuses,
    /// Another client is meant.
    IsAnother,
}

impl RevokeAnswer {
    /// All that this version knows.
    pub const ALL: [Self; 4] = [Self::Stops, Self::HasNone, Self::Refuses, Self::IsAnother];

    /// As it is written in messages, for ever.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stops => "stops",
            Self::HasNone => "none",
            Self::Refuses => "refuses",
            Self::IsAnother => "another",
        }
    }

    /// The answer that is written so. `None` for one that this version does not know.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.word() == word)
    }
}

impl ClientMessage {
    /// The key that the message is about.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        match self {
            Self::WhoHolds { key, .. }
            | Self::Holds { key, .. }
            | Self::Revoke { key, .. }
            | Self::Revoking { key, .. } => key,
        }
    }

    /// The same message about another key.
    #[must_use]
    pub fn about(mut self, other: LockKey) -> Self {
        match &mut self {
            Self::WhoHolds { key, .. }
            | Self::Holds { key, .. }
            | Self::Revoke { key, .. }
            | Self::Revoking { key, .. } => *key = other,
        }
        self
    }
}
