//! `self: Rc<Self>`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::rc::Rc;

struct Shop {
    id: u32,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>")]
    async fn local_pointer(self: Rc<Self>) -> Result<u32, LockError> {
        Ok(self.sold)
    }
}

pub(crate) fn main() {
    support::run(async {
        let shop = Rc::new(Shop { id: 2, sold: 1 });
        assert_eq!(shop.local_pointer().await.unwrap(), 1);
    });
}
