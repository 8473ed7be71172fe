//! [`Round`]: every server is asked for its part of a lock, and a majority decides.

use std::sync::Arc;

use lock_store::{
    Answer, Failure, Instant, Link, LockKey, Mutex, Owner, StoreError, StoreErrorKind,
};
use tokio::sync::Notify;

use super::ends::Ends;
use crate::commands::quorum::Taken;
use crate::store::RedisStore;

/// A round, and what is known of its parts.
#[derive(Debug)]
pub(super) struct Round {
    /// Its own owner token, which no other round ever has.
    pub(super) owner: Owner,
    pub(super) key: LockKey,
    state: Mutex<RoundState>,
    /// A part has become known, or the round is over.
    changed: Notify,
    /// How it ends on each server.
    pub(super) ends: Ends,
}

#[derive(Debug)]
struct RoundState {
    parts: Vec<Part>,
    until: Instant,
    over: bool,
}

/// What one server has of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It was asked, and neither an answer nor the end of its time has come.
    Asked,
    Has,
    /// It has none, and will get none.
    HasNot,
    /// It may have it, or get it yet by a command over this link.
    Unknown(Link),
}

impl Round {
    pub(super) fn new(owner: Owner, key: LockKey, servers: usize, until: Instant) -> Arc<Self> {
        Arc::new(Self {
            owner,
            key,
            state: Mutex::new(RoundState {
                parts: vec![Part::Asked; servers],
                until,
                over: false,
            }),
            changed: Notify::new(),
            ends: Ends::new(servers),
        })
    }

    /// When all its parts have ended by themselves, and whatever was sent for it is lost.
    pub(super) fn until(&self) -> Instant {
        self.state.lock().until
    }

    pub(super) fn prolong(&self, until: Instant) {
        let mut state = self.state.lock();
        state.until = state.until.max(until);
    }

    /// What is known of one server's part.
    pub(super) fn part(&self, at: usize) -> Part {
        self.state.lock().parts[at]
    }

    pub(super) fn settle(&self, at: usize, reply: &Result<Answer<Taken>, Failure>) {
        let part = match reply {
            Ok(answer) => match answer.value {
                Taken::Granted { .. } => Part::Has,
                Taken::Held { .. } | Taken::Conflict => Part::HasNot,
            },
            Err(failure) => failure.unknown.map_or(Part::HasNot, Part::Unknown),
        };
        self.state.lock().parts[at] = part;
        self.changed.notify_waiters();
    }

    /// Nothing more is to be sent for it.
    pub(super) fn end(&self) {
        self.state.lock().over = true;
        self.changed.notify_waiters();
    }

    /// Waits until a server can be reached, unless the round is over before.
    pub(super) async fn reaches(&self, server: &RedisStore, by: Instant) -> Result<(), StoreError> {
        let over = async {
            loop {
                let changed = self.changed.notified();
                if self.state.lock().over {
                    return;
                }
                changed.await;
            }
        };
        tokio::select! {
            biased;
            reached = server.reached(by) => reached,
            () = over => {
                let text = "it could not be reached";
                Err(StoreError::new(StoreErrorKind::Disconnected, text))
            }
        }
    }

    /// What has become of the question to one server. It has a time limit of its own.
    pub(super) async fn settled(&self, at: usize) -> Part {
        loop {
            let changed = self.changed.notified();
            match self.part(at) {
                Part::Asked => {}
                part => return part,
            }
            changed.await;
        }
    }
}
