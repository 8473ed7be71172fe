//! [`RequestState`]: where a request stands on the way to its key.

use std::ops::ControlFlow;
use std::sync::Arc;

use lock_store::Instant;

use crate::engine::hold::Hold;

/// Where a waiting request stands.
#[derive(Clone, Copy)]
pub(super) enum RequestState {
    /// In the local queue, and the store knows nothing of it. As the first, it waits until then for
    /// the hold of another task.
    InLocalQueue { handoff_until: Option<Instant> },
    /// The store is to be asked now.
    Asks,
    /// The store has said that the key is taken. The first of the local queue asks again then.
    InStoreQueue { recheck_at: Instant },
    /// The key is taken, and another request of this process asks for both. As the first, this one
    /// would ask then.
    BehindFirst { recheck_at: Instant },
    /// The store has failed, or refused for now. It is asked again then.
    BacksOff {
        failed_at: Instant,
        again_at: Instant,
    },
}

/// What a request goes on with: the state that follows, or the hold that it got.
pub(super) type Next = ControlFlow<Arc<Hold>, RequestState>;

impl RequestState {
    pub(super) fn back_off(failed_at: Instant, again_at: Instant) -> Self {
        Self::BacksOff {
            failed_at,
            again_at,
        }
    }

    pub(super) fn first(fair: bool) -> Self {
        if fair {
            Self::Asks
        } else {
            Self::InLocalQueue {
                handoff_until: None,
            }
        }
    }

    /// When the store is to be asked if nothing is heard before.
    pub(super) fn next_ask_at(self, is_first: bool) -> Option<Instant> {
        match self {
            Self::InLocalQueue { handoff_until } => handoff_until.filter(|_| is_first),
            Self::InStoreQueue { recheck_at } => is_first.then_some(recheck_at),
            Self::BacksOff { again_at, .. } => Some(again_at),
            Self::Asks | Self::BehindFirst { .. } => None,
        }
    }
}
