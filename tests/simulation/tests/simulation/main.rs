//! The real engine in simulated time, over the embedded store, with a seeded network between them.
//!
//! Every run is one number: the same seed gives the same run, message by message. CI runs 1,000 of
//! them. A long run is one command, and so is one seed, line by line:
//!
//! ```text
//! LOCK_SIM_SEEDS=100000 cargo test --release -p lock-simulation --test simulation seeds_show -- \
//!     --nocapture
//! LOCK_SIM_SEED=42 cargo test -p lock-simulation --test simulation seeds_show -- --nocapture
//! ```
//!
//! `LOCK_SIM_SEEDS=5000..9000` runs those. `LOCK_CANCEL_SAMPLES` says how many futures are dropped
//! on a real Redis.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod asking;
mod cancellation;
mod couriers;
mod faults;
mod found;
mod groups;
mod holding;
mod leaving;
mod lies;
mod mistakes;
mod nesting;
mod network;
mod oracle;
mod refusals;
mod rng;
mod run;
mod seeds;
mod server;
mod troubles;
mod users;
mod wires;
mod witness;
mod world;
mod wrong;
