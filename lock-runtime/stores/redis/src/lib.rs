//! Locks in Redis (6.0 or later).
//!
//! An exclusive lock is a plain string with a lease. Its value is the owner token. Every client of
//! the classic recipe (`SET key token NX PX lease`, delete if the value is still the token; Redis
//! documentation, *Distributed locks with Redis*) takes and respects it. A lock that is held in
//! shares is a sorted set. The waiters are in another sorted set beside the lock: each release
//! hands the lock to the first of them.

mod access;
mod builder_login;
mod cluster;
mod commands;
mod config;
mod connection_login;
mod context;
mod contract;
mod diagnosis;
mod errors;
mod layouts;
mod names;
mod open;
mod pollers;
mod quorum;
mod random;
mod replicas;
mod resp;
mod scripts;
mod server_text;
mod servers;
mod store;
#[cfg(feature = "tls")]
mod tls;
mod topology;
mod transport;
mod wire;

pub use self::config::Replicas;
pub use self::open::{Settings, open, without_layout_options};
pub use self::topology::address_map::AddressMap;
