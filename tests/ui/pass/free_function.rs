//! A free function with early returns, `?`, and a body that waits.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:<product_id>", lease = "10s")]
async fn deduct(product_id: u64, amount: u32) -> Result<u32, LockError> {
    if amount == 0 {
        return Ok(0);
    }
    tokio::task::yield_now().await;
    Ok(remaining(product_id, amount).unwrap_or(0))
}

fn remaining(_product_id: u64, amount: u32) -> Result<u32, std::num::TryFromIntError> {
    u32::try_from(100 - i64::from(amount))
}

#[distributed_lock(key = "unit", on_error = drop)]
async fn unit() {
    tokio::task::yield_now().await;
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(deduct(42, 1).await.unwrap(), 99);
        assert_eq!(deduct(42, 0).await.unwrap(), 0);
        unit().await;
    });
}
