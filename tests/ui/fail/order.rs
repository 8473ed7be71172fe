//! Attributes above that leave a synchronous function.

use lock_runtime::{LockError, distributed_lock, rate_limited};

#[tokio::test]
#[distributed_lock(key = "a")]
async fn a_test() -> Result<(), LockError> {
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
#[distributed_lock(key = "a")]
async fn a_main() -> Result<(), LockError> {
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
#[rate_limited(key = "a", rate = "1/s")]
async fn limited(id: u8) -> Result<(), LockError> {
    let _ = id;
    Ok(())
}

struct Runtime;

impl Runtime {
    fn block_on<T>(self, _: impl Future<Output = T>) -> T {
        loop {}
    }
}

#[distributed_lock(key = "a")]
fn by_hand() -> Result<(), LockError> {
    Runtime.block_on(async { Ok(()) })
}

fn main() {
    let _ = (a_main(), limited(1), by_hand());
}
