//! The local queue: how tasks of this process hand off one key without the store.
//!
//! The waiters of a key stand in arrival order. Only the first of them asks the store (with `fair`
//! all ask, and only the first rechecks), so a thousand waiting tasks cost the store no more than
//! one. While the process has its tenure of the key, a release hands the hold off to the first
//! willing waiter. A waiter that nobody polls loses its place after some time, and what it was
//! given goes to the next one.

mod handoff;
pub(super) mod patrol;
mod queue;
mod queues;
mod signal;
mod skipped;
mod state;
mod tenure;
mod waiter;

pub(super) use self::handoff::TakenOver;
pub(super) use self::queue::Releasing;
pub(crate) use self::queues::LocalQueues;
pub(super) use self::state::{
    AskedStore, Doing, Handoff, HeardGrant, LocalQueue, QueuedRequest, Signal, Tenure,
};
pub(super) use self::waiter::Waiter;
