//! [`State`]: where a request stands on the way to its key.

use lock_store::Instant;

/// Where a waiting request stands.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// In the local queue, and the store knows nothing of it. As the first, it waits until then for
    /// the hold of another task.
    InLocalQueue { handoff_until: Option<Instant> },
    /// The store is to be asked now.
    Asks,
    /// The store has said that the key is taken. The first of the local queue asks again then.
    InStoreQueue { recheck_at: Instant },
    /// The store has failed, or refused for now. It is asked again then.
    BacksOff {
        failed_at: Instant,
        again_at: Instant,
    },
}

impl State {
    pub(super) fn backs_off(failed_at: Instant, again_at: Instant) -> Self {
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
}
