//! Distributed locks for async Rust that a team can trust, and put on a function with one line.
//!
//! ```
//! use lock_runtime::{LockClient, LockError, distributed_lock};
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
//!     assert_eq!(deduct_stock(42, 1).await?, 99);
//!     Ok(())
//! }
//! ```
//!
//! The promise: *exclusive while your guard is valid on your own monotonic clock, as long as the
//! store keeps acknowledged writes; and safe without those conditions wherever the resource checks
//! the fencing token.*
//!
//! Start with [`distributed_lock`] and [`rate_limited`] for functions, [`LockClient`] for
//! everything else, and [`LockError`] for what can go wrong. The [`guide`] has a page for each
//! subject: guarantees, errors, Redis set-up, topologies, cost, testing, comparison, migration.
//!
//! In your own tests, use [`LockClient::in_memory`]. The feature `test-util` adds a client that
//! follows tokio's paused clock, and one whose store has faults.

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
mod mends;
#[cfg(feature = "__internals")]
mod probe;
#[cfg(feature = "test-util")]
mod test_util;

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

pub use api::{Decision, Guard, Latch, Lock, Rate, RateLimiter, RwLock, Semaphore};
pub use client::{Health, Inspection, LockClient, LockClientBuilder, init};
pub use config::OnLost;
pub use error::{HeldBy, KeyKind, LockError, LostReason};
#[cfg(feature = "macros")]
pub use lock_macros::{distributed_lock, lock_key, rate_limited};
#[doc(inline)]
pub use lock_store::{
    FencingToken, Finding, KeyFault, LockKey, MAX_KEY_BYTES, Role, ServerHealth, StoreError,
    StoreErrorKind,
};
#[cfg(feature = "redis")]
#[doc(inline)]
pub use lock_store_redis::Credentials;
#[cfg(feature = "tls")]
#[doc(inline)]
pub use lock_store_redis::Tls;
#[cfg(feature = "__internals")]
pub use mends::Mend;
#[cfg(feature = "__internals")]
pub use probe::Probe;
#[cfg(feature = "test-util")]
pub use test_util::{Faults, HeldByAnother};
