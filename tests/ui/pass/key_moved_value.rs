//! Values that the body moves, whole or in part, after the key has looked at them.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

#[derive(Clone)]
struct Order {
    id: u64,
    items: Vec<String>,
    note: String,
}

#[distributed_lock(key = "name:<name>", guard = lock)]
async fn whole(name: String) -> Result<(LockKey, String), LockError> {
    Ok((lock.key().clone(), name))
}

#[distributed_lock(key = "order:<order.items[0]>:<order.note.to_uppercase()>:<order.clone().id>", guard = lock)]
async fn moved_by_the_body(order: Order) -> Result<(LockKey, Vec<String>), LockError> {
    let Order { items, .. } = order;
    Ok((lock.key().clone(), items))
}

pub(crate) fn main() {
    support::run(async {
        let (key, name) = whole("n".to_owned()).await.unwrap();
        assert_eq!((key, &*name), (LockKey::from("name:n"), "n"));
        let order = Order {
            id: 7,
            items: vec!["apple".to_owned(), "pear".to_owned()],
            note: "quick".to_owned(),
        };
        let (key, items) = moved_by_the_body(order).await.unwrap();
        assert_eq!(
            (key, items.len()),
            (LockKey::from("order:apple:QUICK:7"), 2)
        );
    });
}
