//! A body that is not `Send`, where `Send` is asked for.

use lock_runtime::{LockError, distributed_lock};

fn assert_send(_: impl Send) {}

#[distributed_lock(key = "a")]
async fn work() -> Result<u8, LockError> {
    let shared = std::rc::Rc::new(1);
    tokio::task::yield_now().await;
    Ok(*shared)
}

fn main() {
    assert_send(work());
}
