//! `reentrant`: a nested call shares the hold, or is refused.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", reentrant = true)]
async fn shares(levels: u32) -> Result<u32, LockError> {
    match levels {
        0 => Ok(0),
        _ => Ok(Box::pin(shares(levels - 1)).await? + 1),
    }
}

#[distributed_lock(key = "a", reentrant = false)]
async fn refuses(levels: u32) -> Result<u32, LockError> {
    match levels {
        0 => Ok(0),
        _ => Ok(Box::pin(refuses(levels - 1)).await? + 1),
    }
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(shares(1).await.unwrap(), 1);
        assert_eq!(refuses(0).await.unwrap(), 0);
        assert!(matches!(
            refuses(1).await,
            Err(LockError::WouldDeadlock { .. })
        ));
    });
}
