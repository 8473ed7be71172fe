//! Locks in a SQLite database: for several processes of one machine, without a server.
//!
//! The rules are those of the embedded store ([`lock_store::memory`]), over rows. A client has one
//! thread with one connection. What waits for the thread is carried out in one transaction, so that
//! independent keys share its cost.
//!
//! - Leases end on boot time, which nobody can set. When the machine starts again, all holds have
//!   ended.
//! - Each client keeps a lock on a file of its own, which the kernel frees when its process ends.
//!   Whoever finds a key taken by such a client ends that client's holds at once.
//! - Waiters hear of grants by datagrams, which are only hints.
//!
//! It needs Linux. On other systems this crate is empty.
#![cfg(any(target_os = "linux", target_os = "android"))]

mod batch;
mod client_folder;
mod client_row;
mod contract;
mod database;
mod database_locks;
mod errors;
mod file_system;
mod files;
mod holders;
mod job;
mod latch;
mod lock;
mod machine;
mod mail;
mod mailbox;
mod open;
mod rate;
mod schema;
mod step;
mod store;
mod sweep;
mod url;
mod worker;

pub use self::open::open;
