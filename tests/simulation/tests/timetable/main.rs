//! When the store is asked for what, and for how long: every command of the engine with its instant
//! and its time limit, in simulated time.
//!
//! The rules are those of `engine/timing.rs`; what is shown here is that the engine keeps to them,
//! whatever the store does.
//!
//! Each test records its schedules and compares them with a file of its name in `snapshots`. When a
//! schedule is to change, this writes the files anew, for a reviewer to read:
//!
//! ```text
//! INSTA_UPDATE=always cargo test -p lock-simulation --test timetable
//! ```
//!
//! What a test is about it asserts itself, and what holds for every schedule is in `rules.rs`:
//! neither can be blessed away.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod background;
mod fates;
mod latches;
mod nested;
mod passing;
mod rates;
mod recording_store;
mod renewing;
mod rules;
mod schedule;
mod several;
mod waiting;
