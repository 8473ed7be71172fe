//! `mode`: an exclusive lock, a reader and a writer.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", mode = "exclusive")]
async fn exclusive() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "catalogue:<shop>", mode = "read")]
async fn read(shop: u64) -> Result<u64, LockError> {
    Ok(shop)
}

#[distributed_lock(key = "catalogue:<shop>", mode = "write", fair = true, wait = "5s")]
async fn write(shop: u64) -> Result<u64, LockError> {
    // The writer may read.
    read(shop).await
}

pub(crate) fn main() {
    support::run(async {
        exclusive().await.unwrap();
        assert_eq!(read(1).await.unwrap(), 1);
        assert_eq!(write(2).await.unwrap(), 2);
    });
}
