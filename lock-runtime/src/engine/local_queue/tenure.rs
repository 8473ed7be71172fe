//! A process's tenure of a key: while it lasts, the hold is handed off from task to task without
//! the store.
//!
//! Lock cohorting (Dice, Marathe and Shavit, "Lock Cohorting: A General Technique for Designing
//! NUMA Locks", PPoPP 2012), with processes for its nodes: a bounded number of local handoffs, and
//! then the other processes have their turn.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Instant, LockKey, Owner};

use super::state::{Handoff, HandoffMarker, LocalQueue, Tenure};
use crate::config::Defaults;
use crate::engine::fencing::window::TokenWindow;

impl Tenure {
    /// `handed_until` is the end of the first lease, if the store handed the key over.
    pub(crate) fn new(
        owner: Owner,
        began: Instant,
        handed_until: Option<Instant>,
        tokens: TokenWindow,
        marker: HandoffMarker,
    ) -> Box<Self> {
        Box::new(Self {
            owner,
            began,
            handoffs: 0,
            lasts_until: began,
            handed_until,
            allowed: None,
            tokens,
            marker,
        })
    }

    pub(super) fn key(&self) -> &LockKey {
        self.marker.key()
    }

    /// True if the other processes must get their turn: by the number of handoffs, or by time.
    pub(super) fn is_over(&self, now: Instant, limits: &Defaults) -> bool {
        self.handoffs >= limits.local_handoffs || now >= self.began + limits.local_tenure
    }

    /// The store was asked to keep the key until then.
    pub(crate) fn extend_to(&mut self, until: Instant) {
        self.lasts_until = self.lasts_until.max(until);
    }

    /// See [`timing::allowed`](crate::engine::timing::allowed).
    pub(crate) fn note_allowed(&mut self, allowed: Option<Duration>) {
        self.allowed = allowed;
    }

    pub(crate) fn next_token(&mut self) -> Option<u64> {
        self.tokens.next_token()
    }

    pub(crate) fn into_handoff(self: Box<Self>, deadline: Instant) -> Handoff {
        Handoff {
            tenure: self,
            deadline,
        }
    }
}

impl HandoffMarker {
    pub(super) fn new(queue: &Arc<LocalQueue>) -> Self {
        queue.state.lock().tenures += 1;
        let queue = Arc::clone(queue);
        Self { queue }
    }

    pub(super) fn key(&self) -> &LockKey {
        &self.queue.key
    }
}

impl Drop for HandoffMarker {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.tenures -= 1;
        let willing = state.first().filter(|(_, first)| first.willing);
        let next = willing.map(|(_, first)| first.signal.wake_up());
        drop(state);
        drop(next);
    }
}
