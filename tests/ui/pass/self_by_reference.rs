//! `&self`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

struct Shop {
    id: u32,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn shared(&self) -> Result<u32, LockError> {
        tokio::task::yield_now().await;
        Ok(self.sold)
    }
}

pub(crate) fn main() {
    support::run(async {
        let shop = Shop { id: 1, sold: 3 };
        assert_eq!(shop.shared().await.unwrap(), 3);
    });
}
