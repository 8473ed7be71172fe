//! When the store is asked for what, and for how long: every command of the engine with its instant and its time limit,
//! in simulated time.
//!
//! The rules are those of `engine/time.rs`; what is shown here is that the engine keeps to them, whatever the store does.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod background;
mod desk;
mod latches;
mod nested;
mod passing;
mod rates;
mod renewing;
mod several;
mod waiting;
