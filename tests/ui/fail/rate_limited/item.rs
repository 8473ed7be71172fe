//! Items that can't have the rate limiter.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
fn not_async() -> Result<(), LockError> {
    Ok(())
}

#[rate_limited(key = "a", rate = "1/s")]
const fn const_fn() -> u8 {
    1
}

trait Api {
    #[rate_limited(key = "a", rate = "1/s")]
    async fn call(&self) -> Result<(), LockError>;
}

#[rate_limited(key = "a", rate = "1/s")]
struct Structure;

struct Implemented;

#[rate_limited(key = "a", rate = "1/s")]
impl Implemented {
    fn work(&self) {}
}

fn main() {
    let _ = not_async();
    const _: u8 = const_fn();
    let _ = Structure;
    Implemented.work();
}
