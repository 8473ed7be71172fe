//! Long forms of the tests, for nights and weekends: `bash tests/long/run`.

pub mod claims;
pub mod engine_mutants;
pub mod mutants;
pub mod script_mutants;
