//! Names that a pattern binds.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

struct Path<T>(T);

struct Order {
    id: u64,
    items: Vec<String>,
}

#[distributed_lock(key = "shop:<shop>:order:<id>:<items[0]>", guard = lock)]
async fn place(Path(shop): Path<u32>, Order { id, items }: Order) -> Result<LockKey, LockError> {
    drop(items);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "first:<first>:<number>", guard = lock)]
async fn partly([first, ..]: [u8; 3], (_, number): (String, u8)) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let order = Order {
            id: 7,
            items: vec!["apple".to_owned()],
        };
        let key = place(Path(1), order).await.unwrap();
        assert_eq!(key, LockKey::from("shop:1:order:7:apple"));
        let key = partly([1, 2, 3], (String::new(), 4)).await.unwrap();
        assert_eq!(key, LockKey::from("first:1:4"));
    });
}
