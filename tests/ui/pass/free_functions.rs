//! Free functions: attributes, visibility, documentation, early returns.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing example panics"
)]
#![allow(unreachable_pub, reason = "it is a program of its own too")]
#![deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    missing_docs,
    rust_2018_idioms
)]

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

/// Documented, public and plain.
///
/// # Errors
/// When the lock is not to be had.
#[distributed_lock(key = "stock:<product_id>", lease = "10s")]
pub async fn deduct(product_id: u64, amount: u32) -> Result<u32, LockError> {
    if amount == 0 {
        return Ok(0);
    }
    tokio::task::yield_now().await;
    Ok(remaining(product_id, amount).unwrap_or(0))
}

fn remaining(_product_id: u64, amount: u32) -> Result<u32, std::num::TryFromIntError> {
    u32::try_from(100 - i64::from(amount))
}

#[must_use = "the number tells what was sold"]
#[distributed_lock(key = "plain", on_error = |_| 0)]
pub(crate) async fn with_must_use() -> u32 {
    7
}

#[cfg(any())]
#[distributed_lock(key = "never")]
async fn configured_out() -> Nothing {}

#[distributed_lock(key = "allowed:<a>")]
#[allow(unused_variables)]
async fn with_allow(a: u8, unused: u8) -> Result<(), LockError> {
    let also_unused = 1;
    Ok(())
}

#[distributed_lock(key = "inner:<a>")]
async fn with_inner_attribute(a: u8) -> Result<(), LockError> {
    #![allow(unused_variables)]
    let unused = 1;
    Ok(())
}

#[distributed_lock(key = "boxed")]
async fn any_error() -> Result<u8, Box<dyn std::error::Error + Send + Sync>> {
    Ok("7".parse()?)
}

#[distributed_lock(key = "unit", on_error = drop)]
async fn unit() {
    tokio::task::yield_now().await;
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(deduct(42, 1).await.unwrap(), 99);
        assert_eq!(deduct(42, 0).await.unwrap(), 0);
        assert_eq!(with_must_use().await, 7);
        with_allow(1, 2).await.unwrap();
        with_inner_attribute(1).await.unwrap();
        assert_eq!(any_error().await.unwrap(), 7);
        unit().await;
    });
}
