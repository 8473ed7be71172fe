//! A number, under `#[async_trait]`.

use async_trait::async_trait;
use lock_runtime::distributed_lock;

#[async_trait]
trait Store {
    async fn save(&self, id: u32) -> u32;
}

#[async_trait]
impl Store for u8 {
    #[distributed_lock(key = "a:<id>")]
    async fn save(&self, id: u32) -> u32 {
        id
    }
}

fn main() {}
