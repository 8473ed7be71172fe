//! `self.a.b`: fields by path and by number.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

struct Shop {
    address: Address,
}

struct Address {
    city: &'static str,
    pair: (u8, (char, bool)),
}

impl Shop {
    #[distributed_lock(key = "shop:<self.address.city>", guard = lock)]
    async fn path(&self) -> Result<LockKey, LockError> {
        Ok(lock.key().clone())
    }

    #[distributed_lock(key = "shop:<self.address.pair.1.0>", guard = lock)]
    async fn numbers(&mut self) -> Result<LockKey, LockError> {
        self.address.pair.1.0 = 'y';
        Ok(lock.key().clone())
    }
}

pub(crate) fn main() {
    support::run(async {
        let address = Address {
            city: "Ulm",
            pair: (1, ('x', true)),
        };
        let mut shop = Shop { address };
        assert_eq!(shop.path().await.unwrap(), LockKey::from("shop:Ulm"));
        assert_eq!(shop.numbers().await.unwrap(), LockKey::from("shop:x"));
        assert_eq!(shop.address.pair, (1, ('y', true)));
    });
}
