//! Together with other attributes, and with itself.
#![allow(clippy::unwrap_used, reason = "a failing example panics")]
#![deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    missing_docs,
    rust_2018_idioms
)]

#[path = "../support.rs"]
mod support;

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};
use tracing::instrument;

type Result<T> = std::result::Result<T, LockError>;

#[instrument]
#[distributed_lock(key = "a:<id>")]
async fn span_around_the_lock(id: u32, mut count: u32) -> Result<u32> {
    count += 1;
    tokio::task::yield_now().await;
    Ok(id + count)
}

#[distributed_lock(key = "a:<id>")]
#[instrument(skip(count), fields(double = id * 2), err)]
async fn lock_around_the_span(id: u32, mut count: u32) -> Result<u32> {
    count += 1;
    tokio::task::yield_now().await;
    Ok(id + count)
}

#[distributed_lock(key = "a:<a>")]
#[distributed_lock(key = "b:<b>")]
async fn two_locks(a: u32, b: u32) -> Result<u32> {
    Ok(a + b)
}

#[async_trait]
trait Load {
    async fn load(&self, id: u32) -> Result<u32>;
}

#[async_trait]
impl Load for u32 {
    #[instrument]
    #[distributed_lock(key = "load:<self>:<id>")]
    async fn load(&self, id: u32) -> Result<u32> {
        Ok(self + id)
    }
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(assert_send(span_around_the_lock(1, 2)).await.unwrap(), 4);
        assert_eq!(assert_send(lock_around_the_span(1, 2)).await.unwrap(), 4);
        assert_eq!(assert_send(two_locks(1, 2)).await.unwrap(), 3);
        assert_eq!(assert_send(1.load(2)).await.unwrap(), 3);
    });
}
