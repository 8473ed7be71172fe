//! The embedded store: complete, in this process, and the executable specification of the Lua
//! scripts.
//!
//! One [`MemoryStore`] stands for one server; each client that [`connect`](MemoryStore::connect)s
//! gets a handle of its own.

mod client;
mod connected;
mod holders;
mod latch;
mod lock;
mod name;
mod queue;
mod rate;
mod server;
mod space;

pub use self::server::MemoryStore;
