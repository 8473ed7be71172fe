//! The call chain: the holds around the code that runs here.
//!
//! The chain is a task-local that each poll of a body sets, for the task that polls it. So it
//! follows calls and `join!`, and ends at a spawn, whoever polls the spawned task.

use std::sync::Arc;

use lock_store::{ClientId, LockKey};
use tokio::task::{Id, try_id};

use super::gate::NestedGate;
use crate::engine::hold::Hold;

tokio::task_local! {
    static CHAIN: OfTask<Arc<Frame>>;
}

/// The holds around a piece of code, innermost first.
pub(crate) type Chain = Option<Arc<Frame>>;

/// A body that runs under a hold.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Siblings exclude each other here, unless they all only read.
    gate: Arc<NestedGate>,
    outer: Chain,
}

impl Frame {
    /// A frame for a body under the gate's hold, inside the frames around this code.
    pub(crate) fn new(gate: Arc<NestedGate>) -> Arc<Self> {
        let outer = current();
        Arc::new(Self { gate, outer })
    }

    /// Where nested calls wait for the hold.
    pub(super) fn gate(&self) -> &Arc<NestedGate> {
        &self.gate
    }

    fn has(&self, client: ClientId, key: &LockKey) -> bool {
        self.gate.hold().find(client, key).is_some()
    }

    /// Whether the guard of this body has a permit of that gate itself.
    fn has_entered(&self, gate: &Arc<NestedGate>) -> bool {
        self.gate
            .outer()
            .is_some_and(|outer| Arc::ptr_eq(outer, gate))
    }
}

fn current() -> Chain {
    let of_task = |chain: &OfTask<Arc<Frame>>| chain.get().cloned();
    CHAIN.try_with(of_task).ok().flatten()
}

/// The innermost hold of this client and key around the caller's code.
pub(crate) fn enclosing(client: ClientId, key: &LockKey) -> Chain {
    let mut found = frames().find(|frame| frame.has(client, key))?;
    // If a nested body enters an outer guard's scope, this very call chain has the permit of that
    // guard's gate. Waiting there would never end. The chain goes on from the frame that has the
    // permit.
    while let Some(entrant) = frames().find(|frame| frame.has_entered(&found.gate)) {
        found = entrant;
    }
    Some(found)
}

/// The holds of this client around the caller's code.
pub(in crate::engine) fn holds(client: ClientId) -> Vec<Arc<Hold>> {
    let holds = frames().map(|frame| Arc::clone(frame.gate.hold()));
    holds.filter(|hold| hold.is_of(client)).collect()
}

/// The frames around the caller's code, innermost first. A body with a hold of its own that was
/// kept beyond the body around it is no longer inside of that one.
fn frames() -> impl Iterator<Item = Arc<Frame>> {
    let frames = std::iter::successors(current(), |frame| frame.outer.clone());
    frames.filter(|frame| !frame.gate.is_closed())
}

/// Runs `poll` inside of a frame.
pub(crate) fn within<T>(frame: &Arc<Frame>, poll: impl FnOnce() -> T) -> T {
    CHAIN.sync_scope(OfTask::new(Arc::clone(frame)), poll)
}

/// A value of the task in which it was set, or of no task.
///
/// A task-local value alone is also seen by each other task that is polled meanwhile, such as those
/// of a `LocalSet`.
#[derive(Debug)]
pub(crate) struct OfTask<T> {
    value: T,
    task: Option<Id>,
}

impl<T> OfTask<T> {
    /// For one poll: a future may be moved into another task before the next.
    pub(crate) fn new(value: T) -> Self {
        Self {
            value,
            task: try_id(),
        }
    }

    /// The value, unless another task is polled.
    pub(crate) fn get(&self) -> Option<&T> {
        (self.task == try_id()).then_some(&self.value)
    }
}
