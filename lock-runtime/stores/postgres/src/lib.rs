//! Locks in a PostgreSQL database: for processes of several machines, in the database that a team
//! already has.
//!
//! The rules are those of the embedded store ([`lock_store::memory`]), as functions of the database
//! ([`MIGRATION`]). A client needs the right to execute them, and none on the tables. A free key
//! takes one statement, and so does a release.
//!
//! - Time is the server's. A statement that was given up is not carried out after its deadline.
//! - A client has a few connections, so that commits of independent keys share their write to disk.
//! - In a session that may be a pooler's, no statement has a name, and one is carried out at a
//!   time: pgbouncer in transaction mode may stand between.
//! - Waiters hear of grants by `NOTIFY`, which is only a hint.
//! - `lock_store.lock_check(name, token)` keeps others out until the caller's own transaction ends.

mod access;
mod acquire;
mod apart;
mod batch;
mod connection;
mod contract;
mod errors;
mod findings;
mod flights;
mod greeting;
mod identity;
mod latches;
mod layouts;
mod listen;
mod locks;
mod login_process;
mod migrate;
mod news;
mod open;
mod own_session;
mod placed;
mod pool;
mod prepared;
mod route;
mod rows;
mod statement;
mod store;
mod sweep;
mod together;
mod transport;
mod turns;
mod url;
mod url_options;

pub use self::open::open;
pub use self::url_options::connect_timeout;

/// The migration: a script of SQL that makes the schema `lock_store`. Whoever applies it must own
/// that schema, or be allowed to create it. It may be applied again at any time.
pub const MIGRATION: &str = include_str!("migration.sql");

/// The version of the functions that this crate calls.
const VERSION: i32 = 1;
