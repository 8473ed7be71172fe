//! What the tests of this workspace stand on: real servers and real processes that can be made
//! to fail on purpose.
//!
//! - [`RedisServer`]: a `redis-server` of its own, which can be killed, paused and restarted.
//! - [`SentinelGroup`]: a master, its replicas and three sentinels, from the same program.
//! - [`RedisCluster`]: three masters with a replica each.
//! - [`RedisQuorum`]: servers that know nothing of each other.
//! - [`RequestLog`]: every request that clients sent to such a server, told apart from what ran
//!   inside scripts.
//! - [`Proxy`]: a network between client and server that delays, freezes, loses and cuts.
//! - [`ChildProcess`]: another process of a service, driven by lines of text.
//! - [`Backend`]: a store under test, embedded or Redis, behind one face.
//! - [`history`]: what processes did with locks, and the checks that find what must not have
//!   happened.
//! - [`nemesis`]: processes under load, and faults at random while their histories are written.
//! - [`polled`]: drops a future after so many polls.
//! - [`store_decorator`]: a store whose every command a test sees and decides about.
//! - [`eventually`]: waits for something to become true instead of sleeping.
//!
//! Everything here ends with the value that stands for it, also when a test panics.
//!
//! # Panics
//!
//! A harness that cannot do what a test asked for panics and says why: a test has nothing
//! better to do with such an error.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: an error of the harness must end the test, loudly"
)]

mod backend;
mod clock;
mod cluster;
mod eventually;
mod heard;
pub mod history;
mod latch_request;
mod log;
pub mod nemesis;
mod os_process;
mod polled;
mod process;
mod proxy;
mod quorum;
mod redis_server;
mod redis_store;
mod request_log;
mod resp;
mod rights;
pub mod seeded;
mod sentinels;
pub mod store_decorator;

pub use backend::Backend;
pub use clock::{monotonic_nanos, runtime_now, sleep_until, wall_micros};
pub use cluster::RedisCluster;
pub use eventually::{eventually, eventually_within};
pub use heard::Heard;
pub use latch_request::{LatchRequest, LatchVerb, Latched};
pub use log::Log;
pub use polled::polled;
pub use process::{ChildProcess, Event};
pub use proxy::Proxy;
pub use quorum::RedisQuorum;
pub use redis_server::{RedisServer, RedisServerBuilder};
pub use redis_store::{PATIENT, redis_store};
pub use request_log::{Request, RequestLog};
pub use rights::{all_documented_rights, documented_rights};
pub use sentinels::{SentinelGroup, SentinelGroupBuilder};

/// `unsafe` is forbidden to every crate of the workspace; examples in documentation are compiled
/// without its lints.
#[cfg(doctest)]
#[doc = concat!("```\n", include_str!("../../ui/pass/unsafe_async_fn.rs"), "```")]
pub mod unsafe_async_fn {}
