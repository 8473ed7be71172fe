//! The embedded store: complete, in this process, and the executable specification of the Lua
//! scripts.
//!
//! One [`MemoryStore`] stands for one server. Each client that [`connect`](MemoryStore::connect)s
//! gets its own handle.

mod client;
mod connected;
mod holders;
#[cfg(feature = "test-util")]
mod intruder;
mod latch;
mod lock;
mod name;
mod queue;
mod rate;
mod server;
mod space;

#[cfg(feature = "test-util")]
pub use self::intruder::Intruder;
pub use self::server::MemoryStore;
