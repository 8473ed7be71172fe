//! Support for this workspace's tests: real servers and real processes that can be made to fail on
//! purpose.
//!
//! - [`PostgresServer`]: a separate PostgreSQL, which can be killed, paused and restarted.
//! - [`SentinelGroup`]: a master, its replicas and three sentinels, of `redis-server`.
//! - [`RedisCluster`]: three masters, with a replica each if wanted.
//! - [`RedisQuorum`]: independent servers.
//! - [`SqliteFile`]: a SQLite database in a folder of its own.
//! - [`EtcdCluster`]: one etcd server or three, which can be killed, paused and restarted.
//! - [`ZooKeeperEnsemble`]: one ZooKeeper server or three, which can be killed, paused and
//!   restarted.
//! - [`PeerNetwork`]: a network between the members of a cluster that can be made to fail.
//! - [`ChildProcess`]: another process of a service, driven by lines of text.
//! - [`nemesis`]: processes under load with random faults, which write histories.
//! - What [`lock_testkit_core`] has, which is exported again: one `redis-server`, the network to a
//!   client, the store under test, histories.
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

mod classic;
mod cluster;
#[cfg(feature = "conformance")]
pub mod conformance;
mod etcd_cluster;
mod etcd_gateway;
mod expired;
mod hand_over;
mod java;
mod log;
mod lost_first;
mod member_process;
mod memory_backend;
pub mod nemesis;
mod packages;
mod peer_network;
#[cfg(target_os = "linux")]
mod pgbouncer;
mod postgres_server;
mod process;
mod quorum;
mod redis_backend;
mod redisson_backend;
mod rights;
mod sentinels;
mod server_faults;
mod shedlock_table;
#[cfg(target_os = "linux")]
mod small_disk;
#[cfg(target_os = "linux")]
mod sqlite_file;
mod text_backend;
mod zookeeper_ensemble;

pub use classic::{ClassicLibrary, Shares};
pub use cluster::RedisCluster;
pub use etcd_cluster::{EtcdCluster, EtcdOptions};
pub use etcd_gateway::EtcdGateway;
pub use expired::expect_an_expired_certificate;
pub use hand_over::fastest_hand_over;
pub use java::{java_classpath, start_java};
pub use lock_testkit_core::*;
pub use log::Log;
pub use lost_first::lost_before_another_has_it;
pub use memory_backend::MemoryBackend;
pub use packages::{left_out, python_with};
pub use peer_network::PeerNetwork;
#[cfg(target_os = "linux")]
pub use pgbouncer::PgBouncer;
pub use postgres_server::{PostgresServer, postgres_has_standbys};
pub use process::{ChildProcess, Event};
pub use quorum::RedisQuorum;
pub use redis_backend::RedisBackend;
pub use redisson_backend::RedissonBackend;
pub use rights::{all_documented_rights, documented_rights};
pub use sentinels::{SentinelGroup, SentinelGroupBuilder};
pub use shedlock_table::ShedlockTable;
#[cfg(target_os = "linux")]
pub use small_disk::SmallDisk;
#[cfg(target_os = "linux")]
pub use sqlite_file::SqliteFile;
pub use text_backend::TextBackend;
pub use zookeeper_ensemble::ZooKeeperEnsemble;

/// `unsafe` is forbidden in every crate of the workspace but the benchmark's. Examples in
/// documentation are compiled without the workspace's lints.
#[cfg(doctest)]
#[doc = concat!("```\n", include_str!("../../ui/pass/unsafe_async_fn.rs"), "```")]
pub mod unsafe_async_fn {}
