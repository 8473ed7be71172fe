//! Reentrancy by call chain: which holds the code that runs here is inside of.
//!
//! The chain is a task-local that every poll of a body sets, so it follows calls and `join!`, and ends at a spawn.

use std::sync::Arc;

use lock_store::{ClientId, LockKey};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::hold::Hold;

tokio::task_local! {
    static CHAIN: Chain;
}

/// The holds around a piece of code, innermost first.
pub(crate) type Chain = Option<Arc<Frame>>;

/// The right to use a hold, of one guard: nested calls borrow it, one at a time, or several that only read.
pub(crate) type Lend = Arc<RwLock<()>>;

/// A body that runs under a hold.
#[derive(Debug)]
pub(crate) struct Frame {
    hold: Arc<Hold>,
    /// A hold is lent to one nested call at a time, so that siblings exclude each other; unless they all only read.
    lend: Lend,
    /// Where the guard of this body has borrowed the hold itself.
    borrowed: Option<Lend>,
    outer: Chain,
}

/// A nested call's share of a hold; dropping it gives it back.
#[derive(Debug)]
#[expect(dead_code, reason = "they are there to be dropped")]
pub(crate) enum Loan {
    Shared(OwnedRwLockReadGuard<()>),
    Alone(OwnedRwLockWriteGuard<()>),
}

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

    /// What nested calls borrow.
    pub(crate) fn lend(&self) -> &Lend {
        &self.lend
    }

    /// Waits for its turn to use the hold.
    pub(crate) async fn borrow(&self, shared: bool) -> Loan {
        let lend = Arc::clone(&self.lend);
        if shared {
            Loan::Shared(lend.read_owned().await)
        } else {
            Loan::Alone(lend.write_owned().await)
        }
    }

    /// The hold, if no other nested call uses it in a way that this one can't go with.
    pub(crate) fn try_borrow(&self, shared: bool) -> Option<Loan> {
        let lend = Arc::clone(&self.lend);
        if shared {
            lend.try_read_owned().ok().map(Loan::Shared)
        } else {
            lend.try_write_owned().ok().map(Loan::Alone)
        }
    }
}

fn current() -> Chain {
    CHAIN.try_with(Clone::clone).ok().flatten()
}

/// The innermost hold of this client and key around the code that asks.
pub(crate) fn enclosing(client: ClientId, key: &LockKey) -> Chain {
    let mut found = frames().find(|frame| frame.hold.find(client, key).is_some())?;
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
