//! `self`, also `mut self`, and one that the body never mentions.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

struct Shop {
    id: u32,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn owned(self) -> Result<u32, LockError> {
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn mutable_owned(mut self) -> Result<u32, LockError> {
        self.sold += 1;
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn unused_owned(self) -> Result<u32, LockError> {
        Ok(0)
    }
}

pub(crate) fn main() {
    support::run(async {
        let shop = || Shop { id: 2, sold: 1 };
        assert_eq!(shop().owned().await.unwrap(), 1);
        assert_eq!(shop().mutable_owned().await.unwrap(), 2);
        assert_eq!(shop().unused_owned().await.unwrap(), 0);
    });
}
