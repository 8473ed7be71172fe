//! Locks in ZooKeeper: for processes of several machines, on servers of which any minority may
//! fail.
//!
//! A key is a node, and each request a child of it, which ZooKeeper numbers: the first children
//! hold the key, as far as what they ask for [fits](lock_store::rules::Holders), and the others
//! wait in their order. A child ends with the session of its client, so the locks of a process that
//! has died are free when its session ends.
//!
//! - A free key takes one round trip, which makes the child and lists all, and so does a release.
//! - Who waits watches one child before it, and no server is asked while nothing happens.
//! - A hold is trusted as long as no server can have ended the session (`trust`). Its lease is
//!   carried by the session's heartbeats, and ended by the client itself.
//! - Fencing tokens are numbers of transactions (`tokens`).
//!
//! It needs ZooKeeper 3.5 or later. The protocol is spoken here (`wire`): what the trust in a
//! session counts from, no client crate tells.

mod acquire;
mod base;
mod connection;
mod contract;
mod dial;
mod ends;
mod errors;
mod findings;
mod jute;
mod mailbox;
mod names;
mod open;
mod own_children;
mod progress;
mod rank;
mod release;
mod session;
mod store;
mod together;
mod tokens;
mod transport;
mod trust;
mod url;
mod waiting;
mod wire;

pub use self::open::open;
