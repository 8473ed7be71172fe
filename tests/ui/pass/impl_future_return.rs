//! A function that returns `impl Future + Send`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "future:<id>")]
fn future(id: u32) -> impl Future<Output = Result<u32, LockError>> + Send {
    let doubled = id * 2;
    async move {
        tokio::task::yield_now().await;
        Ok(doubled)
    }
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(support::assert_send(future(2)).await.unwrap(), 4);
    });
}
