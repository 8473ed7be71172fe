//! Two versions of this library at one store. What is stored or sent has a version: what another
//! version wrote is understood, skipped or refused, and never guessed.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

mod clients;
mod golden;
mod postgres;
mod redis_scripts;
mod sqlite;
