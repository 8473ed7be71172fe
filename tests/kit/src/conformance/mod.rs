//! The contract: behaviours that are written once and run against every engine. A test program
//! without a harness runs them, with one line for the engines:
//!
//! ```text
//! lock_testkit::conformance!(MEMORY, REDIS);
//! ```
//!
//! Each behaviour is a test of its own on each engine,
//! `cluster::turns::other_processes_have_their_turn`. What needs something that an engine
//! [lacks](lock_store::Capabilities) is left out there, and the program says so. Filters, `--skip`,
//! `--exact` and `--list` work as usual. Many tests share a server, and each finds it empty.
//! `CONFORMANCE_REPEAT=100` runs each chosen test a hundred times, side by side.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod arguments;
mod bodies;
mod engine;
mod engines;
mod lists;
mod servers;
mod trials;

mod cancellation;
mod exclusion;
mod fencing;
mod holders;
mod keys;
mod latch;
mod latch_verbs;
mod leaders;
mod leaving;
mod limits;
mod losing;
mod multi_hold;
mod multi_lock;
mod multi_verbs;
mod outages;
mod rates;
mod reentrancy;
mod releasing;
mod revoking;
mod runtimes;
mod rw_lock;
mod rw_lock_holds;
mod semaphore;
mod semaphore_holds;
mod shares;
mod stored;
mod stored_latch;
mod tasks;
mod together;
mod turns;
mod unpolled;
mod verbs;
mod views;
mod waiting;

pub use self::engine::Engine;
pub use self::engines::{
    CLUSTER, ETCD, ETCDS, MEMORY, QUORUM, REDIS, REDISSON, REPLICATED, SENTINELS, SHEDLOCK,
    TIMESTAMP, ZOOKEEPER, ZOOKEEPERS,
};
#[cfg(target_os = "linux")]
pub use self::engines::{POSTGRES, SHEDLOCK_TABLE, SQLITE};
pub use self::trials::run;

use std::pin::Pin;
use std::time::Duration;

use crate::Backend;

/// The `main` of a test program that runs every behaviour on these [engines](Engine).
#[macro_export]
macro_rules! conformance {
    ($($engine:expr),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::conformance::run(&[$($engine),+])
        }
    };
}

/// A lease that a busy machine renews in time, [made longer](Backend::renewable) where servers are
/// slow. Renewals come each third of it: a hold that is there after four thirds was renewed.
const RENEWED: Duration = Duration::from_secs(3);

/// One promise, and its test.
#[derive(Clone, Copy)]
struct Behaviour {
    /// With the module's path.
    name: &'static str,
    test: fn(Backend) -> Pin<Box<dyn Future<Output = ()>>>,
}

/// Names a list of behaviours.
macro_rules! behaviours {
    ($list:ident: $($behaviour:ident),+ $(,)?) => {
        pub(in $crate::conformance) const $list: &[$crate::conformance::Behaviour] =
            &[$($crate::conformance::Behaviour {
                name: concat!(module_path!(), "::", stringify!($behaviour)),
                test: |backend| Box::pin($behaviour(backend)),
            }),+];
    };
}

/// All behaviours of a module.
macro_rules! on_every_store {
    ($($behaviour:ident),+ $(,)?) => {
        $crate::conformance::behaviours!(BEHAVIOURS: $($behaviour),+);
    };
}

/// Those behaviours that need no queue, no order of arrival and no shares.
macro_rules! without_a_queue {
    ($($behaviour:ident),+ $(,)?) => {
        $crate::conformance::behaviours!(WITHOUT_A_QUEUE: $($behaviour),+);
    };
}

/// Behaviours of the scripts of Redis.
macro_rules! on_one_server {
    ($($behaviour:ident),+ $(,)?) => {
        $crate::conformance::behaviours!(ON_ONE_SERVER: $($behaviour),+);
    };
}

use {behaviours, on_every_store, on_one_server, without_a_queue};
