//! A declaration in a trait, without a body.

use lock_runtime::{LockError, rate_limited};

trait Api {
    #[rate_limited(key = "a", rate = "1/s")]
    async fn call(&self) -> Result<(), LockError>;
}

fn main() {}
