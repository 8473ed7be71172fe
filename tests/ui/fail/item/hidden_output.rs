//! A future whose type does not say what it gives.

use lock_runtime::{LockError, distributed_lock};

type Alias = std::pin::Pin<Box<dyn Future<Output = Result<(), LockError>> + Send>>;

#[distributed_lock(key = "a")]
fn work() -> Alias {
    Box::pin(async move { Ok(()) })
}

fn main() {
    let _ = work();
}
