//! Distributed locks for async Rust that a team can trust, and put on a function with one line.
//!
//! ```
//! use lock_runtime::{LockClient, LockError, distributed_lock};
//! use std::time::Duration;
//!
//! #[distributed_lock(key = "stock:<product_id>")]
//! async fn deduct_stock(product_id: u64, amount: u32) -> Result<u32, LockError> {
//!     // read, decide, write: one at a time for each product, over all processes
//!     Ok(100 - amount)
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), LockError> {
//!     // in a service: lock_runtime::init("redis://127.0.0.1/").await?
//!     LockClient::in_memory().install()?;
//!     let done = deduct_stock(42, 1).await;
//!     lock_runtime::shutdown(Duration::from_secs(5)).await;
//!     assert_eq!(done?, 99);
//!     Ok(())
//! }
//! ```
//!
//! The promise: *while your code is told that it holds the lock, nobody else holds it, as long as
//! the store keeps what it has confirmed, clocks do not jump, and no virtual machine is paused.
//! Where that fails, the fencing token lets your database refuse the old holder.*
//!
//! # By task
//! | to | see |
//! |---|---|
//! | connect, once at startup | [`init`]; with settings [`LockClient::builder`], [`guide::settings`] |
//! | start while the store is down | [`LockClientBuilder::connect_lazy`] |
//! | lock a function | [`distributed_lock`], [`guide::attribute`] |
//! | lock a part of a function | [`Lock::run`], or [`Lock::acquire`] and its [`Guard`] |
//! | go on only if the lock is free | [`Lock::try_acquire`], `on_busy = "skip"` |
//! | run a job on one replica | `hold_at_least` of [`distributed_lock`], [`Lock::hold_at_least`] |
//! | have one leader | [`Lock::lead`], [`guide::leaders`] |
//! | keep late writes out of a database | [`Lock::fenced`], [`guide::guarantees`] |
//! | answer a request whose lock is busy, or whose store is down | [`LockError`], [`guide::errors`] |
//! | see who holds a lock, ask for it, take it away | [`LockClient::inspect`], [`revoke`](LockClient::revoke), [`force_release`](LockClient::force_release) |
//! | watch it in production | [`observe`], [`guide::observability`], [`guide::probes`] |
//! | end a service in good order | [`shutdown`], [`LockClient::closing`] |
//! | test a service | [`LockClient::in_memory`], [`LockClient::scope`], [`guide::testing`] |
//! | come from Redisson, ShedLock, Curator or `SET NX` | [`guide::migration`], [`Layout`] |
//!
//! # Choose
//! | you need | attribute | client |
//! |---|---|---|
//! | one at a time | `key` | [`lock`](LockClient::lock) |
//! | readers and writers | `mode` | [`rw_lock`](LockClient::rw_lock) |
//! | at most N at once | `permits` | [`semaphore`](LockClient::semaphore) |
//! | several keys, all or none | `keys` | [`multi_lock`](LockClient::multi_lock) |
//! | at most N in a time | [`rate_limited`] | [`rate_limiter`](LockClient::rate_limiter) |
//! | to wait until all parts are done | – | [`latch`](LockClient::latch) |
//!
//! # Options
//! Those of a function stand on [`distributed_lock`], those of a request on [`Lock`], those of a
//! client on [`LockClientBuilder`]. [`LockError`] says what can go wrong and what to do, a
//! [`Guard`] whether the lock is still held, and its [`FencingToken`] keeps late writes out.
//!
//! # Stores
//! The URL says where the locks are: `redis://`, `rediss://`, `redis+unix://`,
//! `redis-sentinel://`, `redis-cluster://`, `redis-quorum://`, `postgres://`, `zookeeper://`,
//! `etcd://`, `sqlite://` for the processes of one machine, or `memory:` for one process.
//! [`guide::redis`], [`guide::postgresql`], [`guide::zookeeper`], [`guide::etcd`] and
//! [`guide::sqlite`] have the set-up, [`guide::topologies`] what each Redis survives.
//!
//! # Testing
//! [`LockClient::in_memory`] needs no server. The feature `test-util` adds a client that follows
//! tokio's paused clock, and one whose store has faults: [`guide::testing`].
//!
//! # Features
//! | feature | default | adds |
//! |---|---|---|
//! | `macros` | yes | the attributes and `lock_key!` |
//! | `redis` | yes | Redis in all its set-ups |
//! | `postgres` | no | PostgreSQL |
//! | `zookeeper` | no | ZooKeeper |
//! | `etcd` | no | etcd |
//! | `sqlite` | no | a SQLite database, without a server |
//! | `tls` | no | `rediss://`, `postgres://…?sslmode=require`, `tls=on` for ZooKeeper and etcd, certificates |
//! | `metrics` | no | [`observe::MetricsObserver`](crate::observe), for the crate `metrics` |
//! | `test-util` | no | paused time and faults, for the tests of services |
//!
//! # Read more
//! The [`guide`] has a page for each subject: guarantees, errors, Redis set-up, topologies, cost,
//! testing, observability, comparison, migration.

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod api;
mod client;
mod config;
mod engine;
mod error;
#[cfg(any(doc, doctest))]
pub mod guide;
pub mod observe;
mod one_or_more;
#[cfg(feature = "__internals")]
mod probe;
mod revocation;
#[cfg(feature = "test-util")]
mod test_util;
#[cfg(not(feature = "test-util"))]
mod test_util_missing;

/// The repository's front page, whose examples are compiled here.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The attribute's page.
#[cfg(doctest)]
#[doc = include_str!("../../lock-macros/src/attribute.md")]
pub struct AttributePage;

/// The page of the other attribute.
#[cfg(doctest)]
#[doc = include_str!("../../lock-macros/src/rate_limited.md")]
pub struct RateLimitedPage;

pub use api::{Decision, Guard, Latch, Lock, Rate, RateLimiter, Revoke, RwLock, Semaphore};
pub use client::{Health, HeldLock, Inspection, LockClient, LockClientBuilder, init, shutdown};
pub use config::{HoldAfter, OnLost};
pub use error::{HeldBy, KeyKind, LockError, LostReason};
#[cfg(feature = "macros")]
pub use lock_macros::{distributed_lock, lock_key, rate_limited};
#[cfg(feature = "tls")]
#[doc(inline)]
pub use lock_store::Tls;
#[doc(inline)]
pub use lock_store::{
    Credentials, FencingToken, Finding, KeyFault, Layout, LockKey, MAX_KEY_BYTES, Role,
    ServerHealth, StoreError, StoreErrorKind,
};
/// The migration for PostgreSQL as SQL, for who applies it without
/// [`LockClient::migrate`](LockClient::migrate).
#[cfg(feature = "postgres")]
pub use lock_store_postgres::MIGRATION as POSTGRES_MIGRATION;
#[cfg(feature = "__internals")]
pub use probe::Probe;
pub use revocation::{Revocation, StillHeld, WhyHeld};
#[cfg(feature = "test-util")]
pub use test_util::{Faults, HeldByAnother};
