//! Error types that a `LockError` converts into.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "boxed")]
async fn any_error() -> Result<u8, Box<dyn std::error::Error + Send + Sync>> {
    Ok("7".parse()?)
}

enum OrderError {
    SoldOut,
    Lock(LockError),
}

impl From<LockError> for OrderError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

#[distributed_lock(key = "order")]
async fn own_error(left: u8) -> Result<u8, OrderError> {
    left.checked_sub(1).ok_or(OrderError::SoldOut)
}

#[distributed_lock(key = "order", reentrant = false)]
async fn twice() -> Result<u8, OrderError> {
    Box::pin(twice()).await
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(any_error().await.unwrap(), 7);
        assert!(matches!(own_error(1).await, Ok(0)));
        assert!(matches!(own_error(0).await, Err(OrderError::SoldOut)));
        let nested = twice().await;
        assert!(matches!(
            nested,
            Err(OrderError::Lock(LockError::WouldDeadlock { .. }))
        ));
    });
}
