//! The macros of [`lock-runtime`](https://docs.rs/lock-runtime), which re-exports them. Depend on
//! that crate.
//!
//! A file a step, and arrows only down: `args` has every word that a user writes, `parse` reads
//! them, `function` reads the function, `key` and `check` look at both together, `expand` writes
//! the result. `faults` collects the mistakes, `fallback` is emitted when there are any.
//! `rate_limited` has its own checks and expansion, and shares everything else.
#![cfg_attr(
    test,
    expect(clippy::expect_used, reason = "a test fails by panicking")
)]

mod args;
mod check;
mod distributed_lock;
mod expand;
mod fallback;
mod faults;
mod function;
mod key;
mod lock_key;
mod parse;
mod rate_limited;
mod suggest;
mod template;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

#[doc = include_str!("attribute.md")]
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    distributed_lock::apply(args.into(), item.into()).into()
}

#[doc = include_str!("rate_limited.md")]
#[proc_macro_attribute]
pub fn rate_limited(args: TokenStream, item: TokenStream) -> TokenStream {
    rate_limited::apply(args.into(), item.into()).into()
}

/// The key that a template gives, where there is no attribute: `lock_key!("stock:<product_id>")` is
/// a `LockKey`.
///
/// Templates, checks and escaping are those of `key = "…"` of [`macro@distributed_lock`], so both
/// lock the same thing. A placeholder begins with any variable in scope. If `lock_runtime` is
/// re-exported under another path, write `lock_key!("…", crate = path)`.
#[proc_macro]
pub fn lock_key(input: TokenStream) -> TokenStream {
    lock_key::expand(input.into()).into()
}
