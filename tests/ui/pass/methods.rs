//! Methods with every receiver, and native async functions in traits.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing example panics"
)]
#![deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    missing_docs,
    rust_2018_idioms
)]

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

type Result<T> = std::result::Result<T, LockError>;

struct Shop {
    id: u32,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn shared(&self) -> Result<u32> {
        tokio::task::yield_now().await;
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn exclusive(&mut self, amount: u32) -> Result<&mut u32> {
        self.sold += amount;
        Ok(&mut self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn owned(self) -> Result<u32> {
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn mutable_owned(mut self) -> Result<u32> {
        self.sold += 1;
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn unused_owned(self) -> Result<u32> {
        Ok(0)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn shared_pointer(self: Arc<Self>) -> Result<u32> {
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn local_pointer(self: Rc<Self>) -> Result<u32> {
        Ok(self.sold)
    }

    #[distributed_lock(key = "shop:<self.id>")]
    async fn pinned(self: Pin<&mut Self>, amount: u32) -> Result<u32> {
        self.get_mut().sold += amount;
        Ok(amount)
    }

    #[distributed_lock(key = "shop:<id>")]
    async fn associated(id: u32) -> Result<Self> {
        Ok(Self { id, sold: 0 })
    }
}

trait Sell {
    async fn sell(&mut self, amount: u32) -> Result<u32>;

    #[distributed_lock(key = "default:<amount>")]
    async fn with_default_body(&self, amount: u32) -> Result<u32> {
        Ok(amount)
    }
}

impl Sell for Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn sell(&mut self, amount: u32) -> Result<u32> {
        self.sold += amount;
        Ok(self.sold)
    }
}

pub(crate) fn main() {
    support::run(async {
        let mut shop = Shop::associated(1).await.unwrap();
        *shop.exclusive(2).await.unwrap() += 1;
        assert_eq!(shop.shared().await.unwrap(), 3);
        assert_eq!(shop.sell(2).await.unwrap(), 5);
        assert_eq!(shop.with_default_body(2).await.unwrap(), 2);
        assert_eq!(Pin::new(&mut shop).pinned(2).await.unwrap(), 2);
        assert_eq!(shop.owned().await.unwrap(), 7);
        let shop = || Shop { id: 2, sold: 1 };
        assert_eq!(shop().mutable_owned().await.unwrap(), 2);
        assert_eq!(shop().unused_owned().await.unwrap(), 0);
        assert_eq!(Arc::new(shop()).shared_pointer().await.unwrap(), 1);
        assert_eq!(Rc::new(shop()).local_pointer().await.unwrap(), 1);
    });
}
