//! A job that is due in every replica and is done by one.

use lock_runtime::distributed_lock;

use super::error::OrderError;
use super::shop::Shop;

/// How many orders are paid. `None` if another replica counts them, or has just done so. `skip`
/// does not wait.
///
/// # Errors
/// The store of the locks does not answer, or the lock was lost.
#[distributed_lock(
    key = "job:report",
    on_busy = "skip",
    hold_at_least = "30s",
    client = shop.locks(),
)]
pub async fn report(shop: &Shop) -> Result<Option<usize>, OrderError> {
    Ok(Some(shop.paid()))
}
