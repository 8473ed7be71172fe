//! `async fn` in a trait: in implementations, and with a body in the trait itself.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

trait Sell {
    async fn sell(&mut self, amount: u32) -> Result<u32, LockError>;

    #[distributed_lock(key = "default:<amount>")]
    async fn with_default_body(&self, amount: u32) -> Result<u32, LockError> {
        Ok(amount)
    }
}

struct Shop {
    id: u32,
    sold: u32,
}

impl Sell for Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn sell(&mut self, amount: u32) -> Result<u32, LockError> {
        self.sold += amount;
        Ok(self.sold)
    }
}

pub(crate) fn main() {
    support::run(async {
        let mut shop = Shop { id: 1, sold: 3 };
        assert_eq!(shop.sell(2).await.unwrap(), 5);
        assert_eq!(shop.with_default_body(2).await.unwrap(), 2);
    });
}
