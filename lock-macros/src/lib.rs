//! The macros of [`lock-runtime`](https://docs.rs/lock-runtime), which re-exports them. Depend on
//! that crate.
//!
//! `attribute` has the steps in their order, and each step is a file: `parse` reads the options,
//! whose words are in `args`. `function` reads the function. `check` and `key` look at both
//! together. `expand` writes the result. `mistakes` collects what is wrong, and `fallback` writes
//! it beside the function as it was.
#![cfg_attr(
    test,
    expect(clippy::expect_used, reason = "a test fails by panicking")
)]

mod args;
mod attribute;
mod check;
mod expand;
mod fallback;
mod function;
mod key;
mod lock_key;
mod mistakes;
mod parse;
mod suggest;
mod template;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

#[doc = include_str!("attribute.md")]
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute::LOCK.apply(args.into(), item.into()).into()
}

#[doc = include_str!("rate_limited.md")]
#[proc_macro_attribute]
pub fn rate_limited(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute::RATE_LIMIT.apply(args.into(), item.into()).into()
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
