//! `#[tracing::instrument]` above and below the attribute, and with `#[async_trait]` around both.

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

pub(crate) fn main() {
    support::run(async {
        let sum = support::assert_send(span_around_the_lock(1, 2)).await;
        assert_eq!(sum.unwrap(), 4);
        let sum = support::assert_send(lock_around_the_span(1, 2)).await;
        assert_eq!(sum.unwrap(), 4);
        assert_eq!(support::assert_send(1.load(2)).await.unwrap(), 3);
    });
}
