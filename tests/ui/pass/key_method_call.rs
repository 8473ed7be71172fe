//! `order.id()`: also generic, in a chain, with arguments, and one that would take the value.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};

#[derive(Clone)]
struct Order {
    id: u8,
    note: String,
}

impl Order {
    fn id(&self) -> u8 {
        self.id
    }

    fn number<N: From<u8>>(&self) -> N {
        N::from(self.id)
    }
}

#[distributed_lock(key = "order:<order.id()>", guard = lock)]
async fn plain(order: Order) -> Result<LockKey, LockError> {
    drop(order);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "order:<order.number::<u32>()>", guard = lock)]
async fn generic(order: &Order) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key = "order:<order.note.trim_matches(edge).to_uppercase()>", guard = lock)]
async fn chain(order: Order, edge: char) -> Result<LockKey, LockError> {
    drop(order);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "order:<order.clone().id>", guard = lock)]
async fn field_of_a_result(order: Order) -> Result<LockKey, LockError> {
    drop(order);
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let order = Order {
            id: 7,
            note: "-quick-".to_owned(),
        };
        assert_eq!(
            plain(order.clone()).await.unwrap(),
            LockKey::from("order:7")
        );
        assert_eq!(generic(&order).await.unwrap(), LockKey::from("order:7"));
        assert_eq!(
            chain(order.clone(), '-').await.unwrap(),
            LockKey::from("order:QUICK")
        );
        assert_eq!(
            field_of_a_result(order).await.unwrap(),
            LockKey::from("order:7")
        );
    });
}
