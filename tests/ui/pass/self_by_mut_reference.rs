//! `&mut self`, with a result that borrows from it.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

struct Shop {
    id: u32,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn exclusive(&mut self, amount: u32) -> Result<&mut u32, LockError> {
        self.sold += amount;
        Ok(&mut self.sold)
    }
}

pub(crate) fn main() {
    support::run(async {
        let mut shop = Shop { id: 1, sold: 0 };
        *shop.exclusive(2).await.unwrap() += 1;
        assert_eq!(shop.sold, 3);
    });
}
