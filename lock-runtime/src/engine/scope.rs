//! Reentrancy by call chain: which holds the code that runs here is inside of.
//!
//! The chain is a task-local that every poll of a body sets, so it follows calls and `join!`, and ends at a spawn.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::hold::Hold;
use crate::key::LockKey;
use crate::store::ClientId;

tokio::task_local! {
    static CHAIN: Chain;
}

/// The holds around a piece of code, innermost first.
pub(crate) type Chain = Option<Arc<Frame>>;

/// The right to use a hold, of one guard: nested calls borrow it, one at a time.
pub(crate) type Lend = Arc<Mutex<()>>;

/// A body that runs under a hold.
#[derive(Debug)]
pub(crate) struct Frame {
    hold: Arc<Hold>,
    /// A hold is lent to one nested call at a time, so that siblings exclude each other.
    lend: Lend,
    /// Where the guard of this body has borrowed the hold itself.
    borrowed: Option<Lend>,
    outer: Chain,
}

/// A nested call's share of a hold; dropping it gives it back.
pub(crate) type Loan = OwnedMutexGuard<()>;

impl Frame {
    /// A frame for a body under `hold`, inside of whatever this code runs under.
    pub(crate) fn new(hold: Arc<Hold>, lend: Lend, borrowed: Option<Lend>) -> Arc<Self> {
        Arc::new(Self {
            hold,
            lend,
            borrowed,
            outer: current(),
        })
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// Waits for its turn to use the hold.
    pub(crate) fn borrow(&self) -> impl Future<Output = Loan> + Send + use<> {
        Arc::clone(&self.lend).lock_owned()
    }

    /// The hold, if no other nested call uses it.
    pub(crate) fn try_borrow(&self) -> Option<Loan> {
        Arc::clone(&self.lend).try_lock_owned().ok()
    }
}

fn current() -> Chain {
    CHAIN.try_with(Clone::clone).ok().flatten()
}

/// The innermost hold of this client and key around the code that asks.
pub(crate) fn enclosing(client: ClientId, key: &LockKey) -> Chain {
    let mut found =
        frames().find(|frame| frame.hold.owner.client == client && frame.hold.key == *key)?;
    // Where a nested body enters an outer guard's scope, this very call chain has that guard's loan: borrowing from it
    // would never end. The chain goes on from where the loan was given to.
    while let Some(borrower) = frames().find(|frame| {
        frame
            .borrowed
            .as_ref()
            .is_some_and(|borrowed| Arc::ptr_eq(borrowed, &found.lend))
    }) {
        found = borrower;
    }
    Some(found)
}

/// The frames around the code that asks, innermost first.
fn frames() -> impl Iterator<Item = Arc<Frame>> {
    std::iter::successors(current(), |frame| frame.outer.clone())
}

/// Runs `poll` inside of a frame.
pub(crate) fn within<T>(frame: &Arc<Frame>, poll: impl FnOnce() -> T) -> T {
    CHAIN.sync_scope(Some(Arc::clone(frame)), poll)
}

/// Runs a future outside of every frame.
pub(crate) async fn outside<F: Future>(future: F) -> F::Output {
    CHAIN.scope(None, future).await
}
