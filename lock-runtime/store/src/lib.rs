//! The contract between the engine of `lock-runtime` and the stores that keep the locks: few
//! operations, nearly all safe to repeat.
//!
//! Each request carries its owner token. Each reply describes the state, and is never only
//! "failed". A store knows nothing of task queues, guards or settings other than its own. The
//! engine knows nothing of Redis. The embedded [`memory`] store implements the whole contract. It
//! is the executable specification of the others, by the [`rules`] that engines share.
//!
//! Users depend on `lock-runtime`, which re-exports what they need.
//!
//! # What is stable
//! ZooKeeper and etcd came when the contract stood, and so did memcached's, which is written with
//! public crates only. So it follows semantic versioning now: what breaks an engine that compiles,
//! or changes what an operation means, comes with the next 0.x version.
//!
//! - **Stays**: the methods of [`Store`] and [`Listener`], their requests and their replies. The
//!   enums of replies are exhaustive, since the engine has to know what to do about each: a new
//!   variant is a new 0.x version, and so is a method without a default.
//! - **May grow with each version**: what is `#[non_exhaustive]` (requests, replies with details,
//!   [`Capabilities`], [`Layout`], [`StoreErrorKind`] and others), and [`Store`] and [`Listener`],
//!   by methods with a default. An engine that knows nothing of them goes on as before.
//! - **Not covered**: [`rules`] and [`timing`], with which engines are written (memcached's, too),
//!   and whatever this page does not show. An engine that uses them pins the exact version, and
//!   with it that of `lock-runtime`, which asks for its own exactly.

mod capabilities;
mod client_message;
mod clock;
mod context;
mod contract;
mod credentials;
mod decorator;
mod error;
mod health;
mod instant;
mod key;
mod latch;
mod layout;
mod letter;
mod link;
mod listener;
pub mod memory;
mod mutex;
mod namespace;
#[doc(hidden)]
pub mod ordered;
mod owner;
mod rate;
mod request;
pub mod rules;
#[doc(hidden)]
pub mod secrets;
mod server_text;
mod server_url;
mod show;
#[cfg(feature = "__internals")]
mod simulated_stop;
mod staggered;
mod sweeping_map;
pub mod timing;
#[cfg(feature = "tls")]
mod tls;
mod token;

pub use capabilities::{Ability, Capabilities, Hears, LeaseLimits, Lingers, Wish};
pub use client_message::{ClientMessage, RevokeAnswer};
pub use clock::{By, Clock};
pub use context::StoreContext;
pub use contract::{Asked, Finished, Logged, Store, StoreFuture, warn_of_renewal};
#[doc(hidden)]
pub use credentials::MIN_PAUSE;
pub use credentials::{
    Access, Credentials, CredentialsProvider, Login, User, given_once, given_twice,
};
#[doc(hidden)]
pub use decorator::Operation;
pub use error::{ConfigError, StoreError, StoreErrorKind};
pub use health::{Finding, Role, ServerHealth};
pub use instant::Instant;
#[doc(hidden)]
pub use instant::{micros, nanos, wall_micros};
pub use key::{KeyFault, KeyWriter, LockKey, MAX_KEY_BYTES, Shortened};
pub use latch::{LatchCall, LatchCounted, LatchFound, LatchSet, LatchState};
pub use layout::Layout;
#[doc(hidden)]
pub use letter::{Letter, read_number, read_owner, write_number, write_owner};
pub use link::{Answer, Failure, Link, Replied};
pub use listener::{Ended, HandedOver, Listener, Trust, WakeUp};
#[doc(hidden)]
pub use mutex::Mutex;
pub use namespace::Namespace;
pub use owner::{ClientId, ForeignNames, FoundHolder, Holder, Owner};
pub use rate::{MAX_EXACT, RateRequest, Rated};
pub use request::{
    Acquire, Acquired, AcquiredAll, Busy, Claim, Fenced, Granted, LockFound, Permits, Queue,
    Release, Released, Renewal, Renewed,
};
#[doc(hidden)]
pub use server_text::escaped;
#[doc(hidden)]
pub use server_url::{
    Host, ServerUrl, UrlForm, no_tls, percent_decoded, switch_option, time_option, tls_option,
};
#[cfg(feature = "__internals")]
pub use simulated_stop::SimulatedStop;
pub use staggered::Staggered;
#[doc(hidden)]
pub use sweeping_map::SweepingMap;
#[cfg(feature = "tls")]
pub use tls::Tls;
pub use token::FencingToken;
