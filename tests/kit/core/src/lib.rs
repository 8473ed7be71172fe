//! The part of `lock-testkit`, which exports all of it again, that needs no store but the embedded
//! one and Redis. Tests of the engine's internals are built without the rest.
//!
//! - [`RedisServer`]: a separate `redis-server`, which can be killed, paused and restarted.
//! - [`RequestLog`]: every request that clients sent to such a server, without the commands of
//!   scripts.
//! - [`LuaScripts`]: the scripts of the Redis store, as text.
//! - [`Proxy`]: a network between client and server that delays, freezes, loses and cuts.
//! - [`Backend`]: a store under test behind one interface.
//! - [`drift`]: an engine against the rules of a lock, by random commands and times.
//! - [`history`]: what processes did with locks, and checks that find violations.
//! - [`polled()`]: drops a future after a number of polls.
//! - [`store_decorator`]: a store that shows every command to a test, which decides about it.
//! - [`eventually()`]: waits for something to become true instead of sleeping.
//!
//! Everything here ends when the value that stands for it is dropped, even if a test panics.
//!
//! # Panics
//!
//! If the harness cannot do what a test asks, it panics and says why: a test could do nothing
//! better with such an error.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: an error of the harness must end the test, loudly"
)]

mod backend;
mod clock;
pub mod drift;
mod eventually;
mod heard;
pub mod history;
mod latch_request;
mod listed_store;
mod lua_scripts;
mod os_process;
mod polled;
mod port;
mod postgres_wire;
mod proxy;
mod redis_server;
mod redis_store;
mod request_log;
mod resp;
pub mod seeded;
pub mod store_decorator;
mod temporary;
mod zookeeper_wire;

pub use backend::{Asks, Backend, StoreUnderTest};
pub use clock::{monotonic_nanos, runtime_now, sleep_until};
pub use eventually::{eventually, eventually_within, until_served};
pub use heard::Heard;
pub use latch_request::{LatchRequest, LatchVerb, Latched};
pub use listed_store::ListedLocks;
pub use lock_store::wall_micros;
pub use lua_scripts::LuaScripts;
pub use os_process::OsProcess;
pub use polled::polled;
pub use port::Port;
pub use proxy::Proxy;
pub use redis_server::{
    RedisServer, RedisServerBuilder, patient_connection, redis_version, server_is_at_least,
    server_reloads_slowly, server_speaks_tls,
};
pub use redis_store::{PATIENT, context, redis_store};
pub use request_log::{Request, RequestLog};
pub use temporary::temporary_folder;
pub use zookeeper_wire::ZooKeeperSession;
