//! lock-runtime in which mistakes can be switched on, one at a time, to see that the simulation
//! finds them: a copy of its sources with the changes that `build.rs` lists. The sources themselves
//! have no switch.
#![allow(
    warnings,
    clippy::all,
    reason = "the originals are checked, and what is woven in is not well written"
)]

pub mod mistake;

include!(concat!(env!("OUT_DIR"), "/lock-runtime/lib.rs"));
