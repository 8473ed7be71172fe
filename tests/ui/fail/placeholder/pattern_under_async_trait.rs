//! A name of a pattern under `#[async_trait]`, which takes patterns apart in the body.

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};

#[async_trait]
trait Store {
    async fn save(&self, (a, b): (u32, u32)) -> Result<u32, LockError>;
}

#[async_trait]
impl Store for u8 {
    #[distributed_lock(key = "a:<a>")]
    async fn save(&self, (a, b): (u32, u32)) -> Result<u32, LockError> {
        Ok(a + b)
    }
}

fn main() {}
