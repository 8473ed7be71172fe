//! A future by hand that can't carry a `LockError`.

use lock_runtime::distributed_lock;

type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[distributed_lock(key = "a")]
fn work() -> BoxFuture<'static, u32> {
    Box::pin(async move { 1 })
}

fn main() {}
