//! The functions of `ui/pass` once more, as part of this crate: so that clippy looks at them too, and they run.
#![allow(
    clippy::duplicate_mod,
    reason = "each file of `ui/pass` is a program of its own too"
)]

#[path = "../ui/pass/free_functions.rs"]
mod free_functions;
#[path = "../ui/pass/futures.rs"]
mod futures;
#[path = "../ui/pass/generics.rs"]
mod generics;
#[path = "../ui/pass/methods.rs"]
mod methods;
#[path = "../ui/pass/options.rs"]
mod options;
#[path = "../ui/pass/parameters.rs"]
mod parameters;
#[path = "../ui/pass/rate_limited.rs"]
mod rate_limited;
#[path = "../ui/pass/together.rs"]
mod together;
#[path = "../ui/pass/values.rs"]
mod values;

#[test]
fn free_functions_run() {
    free_functions::main();
}

#[test]
fn futures_run() {
    futures::main();
}

#[test]
fn generics_run() {
    generics::main();
}

#[test]
fn methods_run() {
    methods::main();
}

#[test]
fn options_run() {
    options::main();
}

#[test]
fn parameters_run() {
    parameters::main();
}

#[test]
fn rate_limited_run() {
    rate_limited::main();
}

#[test]
fn together_run() {
    together::main();
}

#[test]
fn values_run() {
    values::main();
}
