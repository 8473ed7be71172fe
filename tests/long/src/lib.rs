//! Long forms of the tests, for nights and weekends: `bash tests/long/run`.

pub mod claims;
pub mod mutants;
pub mod rust_mutants;
pub mod script_mutants;
pub mod sql_mutants;
mod text_mutants;
