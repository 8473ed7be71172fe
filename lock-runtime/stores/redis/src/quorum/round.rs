//! [`Round`]: every server is asked for its part of a lock, and a majority decides.

use std::sync::Arc;

use lock_store::{Instant, Link, LockKey, Mutex, Owner, Replied, StoreError, StoreErrorKind};
use tokio::sync::Notify;

use super::ends::Ends;
use crate::commands::quorum::QuorumTaken;
use crate::store::RedisStore;

/// A round, and the known state of its parts.
#[derive(Debug)]
pub(super) struct Round {
    /// The round's own owner token, which no other round ever has.
    pub(super) owner: Owner,
    pub(super) key: LockKey,
    state: Mutex<RoundState>,
    /// Notified when a part becomes known, and when the round is over.
    changed: Notify,
    /// The progress of its end on each server.
    pub(super) ends: Ends,
}

#[derive(Debug)]
struct RoundState {
    parts: Vec<RoundPart>,
    until: Instant,
    is_over: bool,
}

/// One server's part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundPart {
    /// The server was asked. It has not answered, and the time limit has not passed.
    Asked,
    Has,
    /// The server does not have the part, and will not get it.
    HasNot,
    /// The server may have the part, or may get it by a command on this link.
    Unknown(Link),
}

impl Round {
    pub(super) fn new(owner: Owner, key: LockKey, servers: usize, until: Instant) -> Arc<Self> {
        Arc::new(Self {
            owner,
            key,
            state: Mutex::new(RoundState {
                parts: vec![RoundPart::Asked; servers],
                until,
                is_over: false,
            }),
            changed: Notify::new(),
            ends: Ends::new(servers),
        })
    }

    /// The time when all its parts have expired and every command for it counts as lost.
    pub(super) fn until(&self) -> Instant {
        self.state.lock().until
    }

    pub(super) fn prolong(&self, until: Instant) {
        let mut state = self.state.lock();
        state.until = state.until.max(until);
    }

    /// The known state of one server's part.
    pub(super) fn part(&self, at: usize) -> RoundPart {
        self.state.lock().parts[at]
    }

    pub(super) fn note_reply(&self, at: usize, reply: &Replied<QuorumTaken>) {
        let part = match reply {
            Ok(answer) => match answer.value {
                QuorumTaken::Granted { .. } => RoundPart::Has,
                QuorumTaken::Held { .. } | QuorumTaken::Conflict => RoundPart::HasNot,
            },
            Err(failure) => failure
                .unknown
                .map_or(RoundPart::HasNot, RoundPart::Unknown),
        };
        self.state.lock().parts[at] = part;
        self.changed.notify_waiters();
    }

    /// Ends the round: no more requests are sent for it.
    pub(super) fn end(&self) {
        self.state.lock().is_over = true;
        self.changed.notify_waiters();
    }

    /// Waits until a server can be reached, unless the round ends first.
    pub(super) async fn reach(&self, server: &RedisStore, by: Instant) -> Result<(), StoreError> {
        let over = async {
            loop {
                let changed = self.changed.notified();
                if self.state.lock().is_over {
                    return;
                }
                changed.await;
            }
        };
        tokio::select! {
            biased;
            reached = server.wait_until_reached(by) => reached,
            () = over => {
                let text = "it could not be reached";
                Err(StoreError::new(StoreErrorKind::Disconnected, text))
            }
        }
    }

    /// Waits for the outcome of the question to one server. That question has its own time limit.
    pub(super) async fn wait_for_reply(&self, at: usize) -> RoundPart {
        loop {
            let changed = self.changed.notified();
            match self.part(at) {
                RoundPart::Asked => {}
                part => return part,
            }
            changed.await;
        }
    }
}
