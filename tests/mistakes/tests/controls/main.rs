//! A checker that finds nothing wrong with a wrong engine is wrong itself. The simulation finds
//! each deliberate mistake of the engine, by a named check.
//!
//! The simulation is that of `lock-simulation`, over the engine of this package.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test that can't go on has failed; not all of the simulation is used here"
)]

extern crate lock_mistakes as lock_runtime;

#[path = "../../../simulation/tests/simulation/asking.rs"]
mod asking;
#[path = "../../../simulation/tests/simulation/couriers.rs"]
mod couriers;
#[path = "../../../simulation/tests/simulation/faults.rs"]
mod faults;
#[path = "../../../simulation/tests/simulation/groups.rs"]
mod groups;
#[path = "../../../simulation/tests/simulation/holding.rs"]
mod holding;
#[path = "../../../simulation/tests/simulation/leaving.rs"]
mod leaving;
#[path = "../../../simulation/tests/simulation/lies.rs"]
mod lies;
#[path = "../../../simulation/tests/simulation/nesting.rs"]
mod nesting;
#[path = "../../../simulation/tests/simulation/network.rs"]
mod network;
#[path = "../../../simulation/tests/simulation/oracle.rs"]
mod oracle;
#[path = "../../../simulation/tests/simulation/refusals.rs"]
mod refusals;
#[path = "../../../simulation/tests/simulation/rng.rs"]
mod rng;
#[path = "../../../simulation/tests/simulation/run.rs"]
mod run;
#[path = "../../../simulation/tests/simulation/server.rs"]
mod server;
#[path = "../../../simulation/tests/simulation/troubles.rs"]
mod troubles;
#[path = "../../../simulation/tests/simulation/users.rs"]
mod users;
#[path = "../../../simulation/tests/simulation/wires/mod.rs"]
mod wires;
#[path = "../../../simulation/tests/simulation/witness.rs"]
mod witness;
#[path = "../../../simulation/tests/simulation/world.rs"]
mod world;
#[path = "../../../simulation/tests/simulation/wrong.rs"]
mod wrong;

use lock_mistakes::mistake::{Mistake, make};

use crate::run::first_found;
use crate::world::Check;

/// One of that many seeds shows every mistake.
const ENOUGH: u64 = 3000;

/// `likely` is the seed that has found it last: the search begins there.
#[track_caller]
fn is_found(mistake: Mistake, by: Check, likely: u64) {
    let seeds = likely..likely + ENOUGH;
    match make(mistake, || first_found(seeds, None, by)) {
        Some(seed) => println!("{mistake:?} is found by {by:?} with seed {seed}"),
        None => panic!("{ENOUGH} seeds do not find {mistake:?} by {by:?}"),
    }
}

#[test]
fn an_unpolled_task_that_is_not_skipped_is_found_by_the_waiting() {
    is_found(Mistake::SkipsNobody, Check::Waiting, 3);
}

#[test]
fn patience_with_all_keys_as_one_is_found_by_the_waiting() {
    is_found(Mistake::IsPatientWithAllKeysAsOne, Check::Waiting, 78);
}

#[test]
fn a_verdict_on_all_keys_as_one_is_found_by_its_lies() {
    is_found(Mistake::JudgesAllKeysAsOne, Check::Lies, 25);
}

#[test]
fn an_extension_that_outlives_its_release_is_found_by_leftovers() {
    is_found(Mistake::ForgetsExtensionsUnheardOf, Check::Leftover, 1008);
}

#[test]
fn a_nested_body_that_outlives_its_outer_one_is_found_by_what_bodies_do() {
    is_found(Mistake::LendsForEver, Check::Body, 3);
}

#[test]
fn a_hold_that_every_polled_task_shares_is_found_by_exclusion() {
    is_found(Mistake::SharesWithEveryTask, Check::Exclusion, 3);
}

#[test]
fn an_unpolled_nested_request_that_is_not_skipped_is_found_by_the_waiting() {
    is_found(Mistake::SkipsNobodyInside, Check::Waiting, 3);
}

#[test]
fn a_group_that_polls_one_after_the_other_is_found_by_the_waiting() {
    is_found(Mistake::PollsOneAfterTheOther, Check::Waiting, 138);
}
