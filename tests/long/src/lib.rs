//! Long forms of the tests, for nights and weekends: `bash tests/long/run`.

pub mod script_mutants;
