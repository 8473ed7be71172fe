//! The contract. It is written once and run against every store: `cargo test -p lock-tests --test
//! conformance`.
//!
//! Each behaviour is a test of its own on each store,
//! `cluster::turns::other_processes_have_their_turn`; Filters, `--skip`, `--exact` and `--list`
//! work as usual. Many tests share a server, and each finds it empty. `CONFORMANCE_REPEAT=100` runs
//! each chosen test a hundred times, side by side.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod arguments;
mod bodies;
mod servers;
mod store;
mod trials;

mod cancellation;
mod exclusion;
mod fencing;
mod holders;
mod keys;
mod latch;
mod latch_verbs;
mod losing;
mod multi_hold;
mod multi_lock;
mod multi_verbs;
mod rates;
mod reentrancy;
mod releasing;
mod rw_lock;
mod rw_lock_holds;
mod semaphore;
mod semaphore_holds;
mod shares;
mod stored;
mod stored_latch;
mod turns;
mod verbs;
mod views;
mod waiting;

use std::pin::Pin;
use std::process::ExitCode;

use lock_testkit::Backend;

/// For every store but the quorum. A quorum has no queue, no order of arrival and no shares.
const EVERY_STORE: &[&[Behaviour]] = &[
    cancellation::BEHAVIOURS,
    exclusion::BEHAVIOURS,
    fencing::BEHAVIOURS,
    holders::BEHAVIOURS,
    keys::BEHAVIOURS,
    latch::BEHAVIOURS,
    latch_verbs::BEHAVIOURS,
    losing::BEHAVIOURS,
    multi_hold::BEHAVIOURS,
    multi_lock::BEHAVIOURS,
    multi_verbs::BEHAVIOURS,
    rates::BEHAVIOURS,
    reentrancy::BEHAVIOURS,
    releasing::BEHAVIOURS,
    rw_lock::BEHAVIOURS,
    rw_lock_holds::BEHAVIOURS,
    semaphore::BEHAVIOURS,
    semaphore_holds::BEHAVIOURS,
    shares::BEHAVIOURS,
    turns::BEHAVIOURS,
    verbs::BEHAVIOURS,
    views::BEHAVIOURS,
    waiting::BEHAVIOURS,
];

/// For the quorum as well.
const QUORUM: &[&[Behaviour]] = &[
    cancellation::ON_A_QUORUM,
    exclusion::ON_A_QUORUM,
    fencing::ON_A_QUORUM,
    holders::ON_A_QUORUM,
    losing::ON_A_QUORUM,
    multi_hold::ON_A_QUORUM,
    multi_lock::ON_A_QUORUM,
    reentrancy::ON_A_QUORUM,
    releasing::ON_A_QUORUM,
    turns::ON_A_QUORUM,
    views::ON_A_QUORUM,
    waiting::ON_A_QUORUM,
];

/// What scripts leave in a server. Scripts know no topology.
const ONE_SERVER: &[&[Behaviour]] = &[
    stored::found::ON_ONE_SERVER,
    stored::heard::ON_ONE_SERVER,
    stored::portions::ON_ONE_SERVER,
    stored::times::ON_ONE_SERVER,
    stored::tokens::ON_ONE_SERVER,
    stored_latch::ON_ONE_SERVER,
];

/// One promise, and its test.
#[derive(Clone, Copy)]
pub(crate) struct Behaviour {
    /// With the module's path.
    pub(crate) name: &'static str,
    pub(crate) test: fn(Backend) -> Pin<Box<dyn Future<Output = ()>>>,
}

/// Names a list of behaviours.
#[macro_export]
macro_rules! behaviours {
    ($list:ident: $($behaviour:ident),+ $(,)?) => {
        pub(crate) const $list: &[$crate::Behaviour] = &[$($crate::Behaviour {
            name: concat!(module_path!(), "::", stringify!($behaviour)),
            test: |backend| Box::pin($behaviour(backend)),
        }),+];
    };
}

/// Behaviours of every store but the quorum.
#[macro_export]
macro_rules! on_every_store {
    ($($behaviour:ident),+ $(,)?) => { $crate::behaviours!(BEHAVIOURS: $($behaviour),+); };
}

/// Those behaviours that need no queue, no order of arrival and no shares.
#[macro_export]
macro_rules! on_a_quorum {
    ($($behaviour:ident),+ $(,)?) => { $crate::behaviours!(ON_A_QUORUM: $($behaviour),+); };
}

/// Behaviours of the scripts.
#[macro_export]
macro_rules! on_one_server {
    ($($behaviour:ident),+ $(,)?) => { $crate::behaviours!(ON_ONE_SERVER: $($behaviour),+); };
}

fn main() -> ExitCode {
    trials::run(arguments::read())
}
