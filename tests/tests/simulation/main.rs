//! The real engine in simulated time, over the embedded store, with a seeded network between them.
//!
//! Every run is one number: the same seed gives the same run, message by message. `cargo test -p lock-tests --test
//! simulation` runs 1,000 of them. `LOCK_SIM_SEEDS=100000` runs so many, `LOCK_SIM_SEEDS=5000..9000` those, and
//! `LOCK_SIM_SEED=42` shows one, line by line (with `-- --nocapture seeds`).
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod cancellation;
mod couriers;
mod faults;
mod found;
mod mistakes;
mod network;
mod oracle;
mod rng;
mod run;
mod seeds;
mod server;
mod troubles;
mod users;
mod verbs;
mod world;
