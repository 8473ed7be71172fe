//! The call chain: the holds around the code that runs here.
//!
//! The chain is a task-local that each poll of a body sets. So it follows calls and `join!`, and
//! ends at a spawn.

use std::sync::Arc;

use lock_store::{ClientId, LockKey};

use super::gate::NestedGate;
use crate::engine::hold::Hold;

tokio::task_local! {
    static CHAIN: Chain;
}

/// The holds around a piece of code, innermost first.
pub(crate) type Chain = Option<Arc<Frame>>;

/// A body that runs under a hold.
#[derive(Debug)]
pub(crate) struct Frame {
    hold: Arc<Hold>,
    /// Siblings exclude each other here, unless they all only read.
    gate: NestedGate,
    /// Where the guard of this body has a nested permit itself.
    entered: Option<NestedGate>,
    outer: Chain,
}

impl Frame {
    /// A frame for a body under `hold`, inside the frames around this code.
    pub(crate) fn new(hold: Arc<Hold>, gate: NestedGate, entered: Option<NestedGate>) -> Arc<Self> {
        Arc::new(Self {
            hold,
            gate,
            entered,
            outer: current(),
        })
    }

    pub(super) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// Where nested calls wait for the hold.
    pub(super) fn gate(&self) -> &NestedGate {
        &self.gate
    }
}

fn current() -> Chain {
    CHAIN.try_with(Clone::clone).ok().flatten()
}

/// The innermost hold of this client and key around the caller's code.
pub(crate) fn enclosing(client: ClientId, key: &LockKey) -> Chain {
    let mut found = frames().find(|frame| frame.hold.find(client, key).is_some())?;
    // If a nested body enters an outer guard's scope, this very call chain has the permit of that
    // guard's gate. Waiting there would never end. The chain goes on from the frame that has the
    // permit.
    while let Some(entrant) = frames().find(|frame| {
        frame
            .entered
            .as_ref()
            .is_some_and(|entered| Arc::ptr_eq(entered, &found.gate))
    }) {
        found = entrant;
    }
    Some(found)
}

/// The frames around the caller's code, innermost first.
fn frames() -> impl Iterator<Item = Arc<Frame>> {
    std::iter::successors(current(), |frame| frame.outer.clone())
}

/// Runs `poll` inside of a frame.
pub(crate) fn within<T>(frame: &Arc<Frame>, poll: impl FnOnce() -> T) -> T {
    CHAIN.sync_scope(Some(Arc::clone(frame)), poll)
}
