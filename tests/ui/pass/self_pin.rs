//! `self: Pin<&mut Self>`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::pin::Pin;

struct Shop {
    id: u32,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn pinned(self: Pin<&mut Self>, amount: u32) -> Result<u32, LockError> {
        self.get_mut().sold += amount;
        Ok(amount)
    }
}

pub(crate) fn main() {
    support::run(async {
        let mut shop = Shop { id: 1, sold: 5 };
        assert_eq!(Pin::new(&mut shop).pinned(2).await.unwrap(), 2);
        assert_eq!(shop.sold, 7);
    });
}
