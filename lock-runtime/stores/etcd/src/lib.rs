//! Locks in etcd: for processes of several machines, on servers of which any minority may fail.
//!
//! Each request for a lock is a key below the lock's name. The revision that made it is its place:
//! the first keys hold the lock, as far as what they ask for [fits](lock_store::rules::Holders),
//! and the others wait in their order. A key hangs on a lease, so that it ends if its client has
//! died.
//!
//! - A free lock takes one round trip, which makes the key if there is nothing, and so does a
//!   release.
//! - Who waits watches one key before its own, and reads once a second, in case a message was lost.
//!   A client that neither holds nor waits sends keep-alives only.
//! - A hold is trusted as long as no server can have ended its lease (`trust`, `leases`).
//! - Fencing tokens are revisions (`tokens`).
//!
//! It needs etcd 3.4 or later. gRPC is spoken here (`grpc`), over the crate `h2`, with messages
//! that are written by hand (`wire`): no build needs `protoc`. etcd's gateway for JSON would save
//! the crates `h2` and `prost`, but it is off on many servers, and its watches are not cancelled
//! one by one.

mod acquire;
mod base;
mod connection;
mod contract;
mod dial;
mod ends;
mod errors;
mod findings;
mod grpc;
mod keep_alive;
mod leases;
mod mailbox;
mod names;
mod open;
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
mod watches;
mod wire;

pub use self::open::open;
