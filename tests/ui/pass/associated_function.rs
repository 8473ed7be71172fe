//! A function of a type that returns `Self`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

struct Shop {
    id: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<id>")]
    async fn associated(id: u32) -> Result<Self, LockError> {
        Ok(Self { id })
    }
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(Shop::associated(1).await.unwrap().id, 1);
    });
}
