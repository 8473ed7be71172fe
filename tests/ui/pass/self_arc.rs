//! `self: Arc<Self>`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::sync::Arc;

struct Shop {
    id: u32,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn shared_pointer(self: Arc<Self>) -> Result<u32, LockError> {
        Ok(self.sold)
    }
}

pub(crate) fn main() {
    support::run(async {
        let shop = Arc::new(Shop { id: 2, sold: 1 });
        assert_eq!(shop.shared_pointer().await.unwrap(), 1);
    });
}
