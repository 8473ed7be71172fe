//! The macros of [`lock-runtime`](https://docs.rs/lock-runtime), which re-exports them. Depend on that crate.
//!
//! One file a step: `args` reads the options (with `value`, `duration`, `template`, `placeholder`), `function` and `shape` the function,
//! `check` looks at both together, `expand` writes the result (with `request`, `params`, `usage`), `fallback` the mistakes.
#![cfg_attr(
    test,
    expect(clippy::expect_used, reason = "a test fails by panicking")
)]

mod args;
mod attribute;
mod check;
mod duration;
mod expand;
mod fallback;
mod function;
mod params;
mod placeholder;
mod request;
mod shape;
mod suggest;
mod template;
mod usage;
mod value;

use proc_macro::TokenStream;

#[doc = include_str!("attribute.md")]
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute::distributed_lock(args.into(), item.into()).into()
}

/// The key that a template gives, where there is no attribute: `lock_key!("stock:<product_id>")` is a `LockKey`.
///
/// Same templates, same checks and same escaping as `key = "…"` of [`macro@distributed_lock`], so both lock the same
/// thing; a placeholder begins with any variable in scope. `lock_key!("…", crate = path)` when `lock_runtime` is
/// re-exported under another path.
#[proc_macro]
pub fn lock_key(input: TokenStream) -> TokenStream {
    attribute::lock_key(input.into()).into()
}
