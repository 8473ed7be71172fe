//! The embedded store: complete, in this process. With the [`rules`](crate::rules) that it follows,
//! it is the executable specification of the functions in SQL and Lua.
//!
//! One [`MemoryStore`] stands for one server. Each client that [`connect`](MemoryStore::connect)s
//! gets its own handle.

mod client;
#[cfg(feature = "test-util")]
mod intruder;
mod latch;
mod lock;
mod queue;
mod rate;
mod server;
mod space;

#[cfg(feature = "test-util")]
pub use self::intruder::Intruder;
pub use self::server::MemoryStore;

use std::sync::Arc;

use crate::LockKey;

/// The name of a lock, a latch or a bucket in the server: namespace and key.
type SharedName = (Arc<str>, LockKey);
