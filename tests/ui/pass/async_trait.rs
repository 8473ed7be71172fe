//! Methods under `#[async_trait]`.

#[path = "../support.rs"]
mod support;

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};

#[async_trait]
trait Store {
    async fn save(&mut self, id: u32, (a, b): (u8, u8), value: String) -> Result<usize, LockError>;
    async fn load(&self, id: u32) -> Result<&str, LockError>;
}

struct Memory {
    name: String,
    value: String,
}

#[async_trait]
impl Store for Memory {
    #[distributed_lock(key = "store:<self.name>:<id>")]
    async fn save(&mut self, id: u32, (a, b): (u8, u8), value: String) -> Result<usize, LockError> {
        self.value = format!("{value}{a}{b}");
        Ok(self.value.len())
    }

    #[distributed_lock(key = "store:<self.name>:<id>")]
    async fn load(&self, id: u32) -> Result<&str, LockError> {
        Ok(&self.value)
    }
}

pub(crate) fn main() {
    support::run(async {
        let mut store = Memory {
            name: "m".to_owned(),
            value: String::new(),
        };
        let saved = support::assert_send(store.save(1, (2, 3), "v".to_owned())).await;
        assert_eq!(saved.unwrap(), 3);
        assert_eq!(store.load(1).await.unwrap(), "v23");
    });
}
