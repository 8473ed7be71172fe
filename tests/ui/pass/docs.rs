//! Documentation of the function, above and below the attribute.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

/// Documented, public and plain.
///
/// # Errors
/// When the lock is not to be had.
#[allow(unreachable_pub, reason = "it is a program, nothing is public")]
#[distributed_lock(key = "stock:<product_id>", lease = "10s")]
pub async fn above(product_id: u64) -> Result<u64, LockError> {
    Ok(product_id)
}

#[distributed_lock(key = "stock:<product_id>", lease = "10s")]
/// Documented below.
#[doc = "In both forms."]
async fn below(product_id: u64) -> Result<u64, LockError> {
    Ok(product_id)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(above(42).await.unwrap(), 42);
        assert_eq!(below(42).await.unwrap(), 42);
    });
}
