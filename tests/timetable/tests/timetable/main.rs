//! Schedules: every command of the engine to the store, with its instant and its time limit, in
//! simulated time.
//!
//! `engine/timing.rs` makes the rules. These tests show that the engine keeps them, whatever the
//! store does.
//!
//! Each test records its schedules and compares them with a file of its name in `snapshots`. After
//! a deliberate change of a schedule, this writes the files anew, for a reviewer to read:
//!
//! ```text
//! INSTA_UPDATE=always cargo test -p lock-timetable --test timetable
//! ```
//!
//! Two files record none: `thread_end` has real threads, and `views` a store of its own.
//!
//! A test asserts its own subject, and `rules.rs` asserts what holds for every schedule. No new
//! snapshot can hide either.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod background;
mod client;
mod fates;
mod hand_off;
mod inline;
mod latches;
mod leading;
mod names;
mod nested;
mod patrol;
mod rates;
mod recording_store;
mod renewing;
mod revoking;
mod rules;
mod schedule;
mod several;
mod thread_end;
mod trust;
mod until;
mod views;
mod waiting;
