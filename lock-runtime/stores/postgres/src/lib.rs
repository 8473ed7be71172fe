//! Locks in PostgreSQL.
//!
//! The rules are those of the embedded store ([`lock_store::memory`]), in functions of the database
//! (`migration.sql`), so that a lock costs one round trip and a client needs no right on any table.
//!
//! - Operations on one key follow each other: each begins with a lock on the key's name that ends
//!   with its transaction. Leases end on the server's clock.
//! - A client has several connections, since each commit waits for the disk and those of several
//!   sessions wait together. Commands for one key go over one of them.
//! - Waiters hear of grants by `NOTIFY`. The messages are only hints, in transactions of their own:
//!   in that of the release, all commits of the server would follow each other.
//! - `lock_runtime.lock_check(key, token)` in a transaction of the user's keeps the lock from being
//!   taken over until that transaction ends.

mod connection;
mod contract;
mod errors;
mod findings;
mod listening;
mod messages;
mod open;
mod pool;
mod store;
mod sweeper;
mod url;
mod words;

pub use self::open::open;

/// Creates the tables and functions. Applying it again changes nothing.
pub const MIGRATION: &str = include_str!("migration.sql");
