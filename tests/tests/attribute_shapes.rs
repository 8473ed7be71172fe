//! Runs every file of `ui/pass`. Each shows one shape that a function under the attribute can have.
//!
//! The files are modules here. `trybuild` would build all dependencies once more, with their code,
//! for minutes. As modules, clippy looks at them too.

use std::collections::BTreeSet;

#[path = "../ui/pass"]
#[deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    missing_docs,
    rust_2018_idioms
)]
#[allow(
    clippy::duplicate_mod,
    reason = "each file reads like a program, with its own support"
)]
#[allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing example panics"
)]
mod pass {
    pub(crate) mod allow;
    pub(crate) mod associated_function;
    pub(crate) mod async_trait;
    pub(crate) mod boxed_future_return;
    pub(crate) mod cfg;
    pub(crate) mod const_generics;
    pub(crate) mod docs;
    pub(crate) mod dyn_trait_return;
    pub(crate) mod error_types;
    pub(crate) mod free_function;
    pub(crate) mod generics;
    pub(crate) mod impl_future_return;
    pub(crate) mod impl_trait_parameter;
    pub(crate) mod impl_trait_return;
    pub(crate) mod key_arc_str;
    pub(crate) mod key_constant;
    pub(crate) mod key_display_types;
    pub(crate) mod key_evaluated_once;
    pub(crate) mod key_field;
    pub(crate) mod key_index;
    pub(crate) mod key_integers;
    pub(crate) mod key_literal_brackets;
    pub(crate) mod key_many_placeholders;
    pub(crate) mod key_method_call;
    pub(crate) mod key_moved_value;
    pub(crate) mod key_newtype;
    pub(crate) mod key_parameter;
    pub(crate) mod key_pattern_name;
    pub(crate) mod key_plain_text;
    pub(crate) mod key_raw_literals;
    pub(crate) mod key_reference;
    pub(crate) mod key_str;
    pub(crate) mod key_uuid;
    pub(crate) mod keys_fence;
    pub(crate) mod keys_methods;
    pub(crate) mod lifetimes;
    pub(crate) mod macro_rules_fragments;
    pub(crate) mod macro_rules_output;
    pub(crate) mod must_use;
    pub(crate) mod names_in_scope;
    pub(crate) mod native_async_trait;
    pub(crate) mod not_send_body;
    pub(crate) mod option_client;
    pub(crate) mod option_crate;
    pub(crate) mod option_fair;
    pub(crate) mod option_fence;
    pub(crate) mod option_guard;
    pub(crate) mod option_hold_after;
    pub(crate) mod option_hold_at_least;
    pub(crate) mod option_key;
    pub(crate) mod option_keys;
    pub(crate) mod option_lease;
    pub(crate) mod option_max_hold;
    pub(crate) mod option_mode;
    pub(crate) mod option_on_busy;
    pub(crate) mod option_on_error;
    pub(crate) mod option_on_lost;
    pub(crate) mod option_outlives;
    pub(crate) mod option_permits;
    pub(crate) mod option_reentrant;
    pub(crate) mod option_renew;
    pub(crate) mod option_wait;
    pub(crate) mod options_together;
    pub(crate) mod parameter_attributes;
    pub(crate) mod parameter_mut;
    pub(crate) mod parameter_names;
    pub(crate) mod parameter_pattern;
    pub(crate) mod parameter_send;
    pub(crate) mod parameter_unused;
    pub(crate) mod rate_limited;
    pub(crate) mod recursion;
    pub(crate) mod self_arc;
    pub(crate) mod self_by_mut_reference;
    pub(crate) mod self_by_reference;
    pub(crate) mod self_by_value;
    pub(crate) mod self_pin;
    pub(crate) mod self_rc;
    pub(crate) mod tracing_instrument;
    pub(crate) mod two_attributes;
    pub(crate) mod visibility;
    pub(crate) mod where_clause;
}

/// The workspace forbids `unsafe`, so this file is an example in the documentation of `lock-tests`.
const ELSEWHERE: &str = "unsafe_async_fn.rs";

/// A test for each file. If a module above is missing here, its `main` is dead code, which is
/// denied.
macro_rules! every_file_runs {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                pass::$name::main();
            }
        )*

        const FILES: &[&str] = &[$(concat!(stringify!($name), ".rs")),*];
    };
}

every_file_runs! {
    allow,
    associated_function,
    async_trait,
    boxed_future_return,
    cfg,
    const_generics,
    docs,
    dyn_trait_return,
    error_types,
    free_function,
    generics,
    impl_future_return,
    impl_trait_parameter,
    impl_trait_return,
    key_arc_str,
    key_constant,
    key_display_types,
    key_evaluated_once,
    key_field,
    key_index,
    key_integers,
    key_literal_brackets,
    key_many_placeholders,
    key_method_call,
    key_moved_value,
    key_newtype,
    key_parameter,
    key_pattern_name,
    key_plain_text,
    key_raw_literals,
    key_reference,
    key_str,
    key_uuid,
    keys_fence,
    keys_methods,
    lifetimes,
    macro_rules_fragments,
    macro_rules_output,
    must_use,
    names_in_scope,
    native_async_trait,
    not_send_body,
    option_client,
    option_crate,
    option_fair,
    option_fence,
    option_guard,
    option_hold_after,
    option_hold_at_least,
    option_key,
    option_keys,
    option_lease,
    option_max_hold,
    option_mode,
    option_on_busy,
    option_on_error,
    option_on_lost,
    option_outlives,
    option_permits,
    option_reentrant,
    option_renew,
    option_wait,
    options_together,
    parameter_attributes,
    parameter_mut,
    parameter_names,
    parameter_pattern,
    parameter_send,
    parameter_unused,
    rate_limited,
    recursion,
    self_arc,
    self_by_mut_reference,
    self_by_reference,
    self_by_value,
    self_pin,
    self_rc,
    tracing_instrument,
    two_attributes,
    visibility,
    where_clause,
}

#[test]
#[expect(
    clippy::unwrap_used,
    reason = "without the folder there is nothing to test"
)]
fn no_file_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/ui/pass");
    let there = std::fs::read_dir(folder).unwrap();
    let there: BTreeSet<String> = there
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let run = FILES.iter().chain([&ELSEWHERE]);
    let run: BTreeSet<String> = run.map(|name| (*name).to_owned()).collect();
    let forgotten: Vec<&String> = there.symmetric_difference(&run).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}
