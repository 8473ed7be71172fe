//! The rules of a lock, written once: who holds, who is next, what fits, when a place is over,
//! which token follows, and what a call does to a latch, a bucket or a log of passes.
//!
//! They ask nobody and have no clock: an engine brings what it keeps, and the time. An engine that
//! decides in its own process implements [`LockRecord`] for one lock, and each operation of the
//! contract is one of the functions here. It reads the lock in a transaction (SQLite), or it reads
//! a snapshot and writes what has [changed](Holders::changes) if nobody was faster. SQL and Lua are
//! translations: their parts have the names that they have here, but for those that
//! `migration.sql` lists.

mod bucket;
mod holders;
mod latch;
mod lock;
mod pass_log;
mod queue;
mod ranked;
#[cfg(test)]
mod tests;

pub use bucket::TokenBucket;
pub use holders::{HeldPart, HoldId, Holders};
pub use latch::{LatchRecord, StoredLatch};
pub use lock::{
    LockRecord, MOST_HOLDERS, abandon, acquire, fence, force_release, grant, hand_over, holders,
    inspect, next_token, refuse_one, release, renew, shrink,
};
pub use pass_log::PassLog;
pub use queue::{Turn, Waiting, is_forgotten};
pub use ranked::{
    ChildStanding, Obstacle, Rank, RankedRequest, found, holding, is_same_share, rank,
};
