//! Functions whose future is `Send` without the attribute, and with it: what can be sent but not
//! shared between threads is not borrowed while the lock is asked for.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, LockKey, distributed_lock, rate_limited};
use std::cell::{Cell, RefCell};

type Result<T> = std::result::Result<T, LockError>;

struct Order {
    id: u64,
    seen: Cell<u64>,
    locks: Option<LockClient>,
}

fn order() -> Order {
    Order {
        id: 7,
        seen: Cell::new(1),
        locks: None,
    }
}

#[distributed_lock(key = "order:<id>")]
async fn partial(Order { id, seen, .. }: Order) -> Result<u64> {
    tokio::task::yield_now().await;
    Ok(id + seen.get())
}

#[distributed_lock(key = "order:<id>")]
async fn ignored(
    Order { id, .. }: Order,
    _: Cell<u8>,
    (_, one): (RefCell<u8>, u64),
) -> Result<u64> {
    Ok(id + one)
}

#[distributed_lock(key = "order:<order.id>", permits = limit(&order))]
async fn by_name(order: Order) -> Result<u64> {
    tokio::task::yield_now().await;
    Ok(order.seen.get())
}

#[distributed_lock(key = key_of(&order), on_error = Err)]
async fn by_expression(order: Order, mut all: Cell<u64>) -> Result<u64> {
    tokio::task::yield_now().await;
    *all.get_mut() += order.id;
    Ok(all.get())
}

#[rate_limited(key = "order:<id>", rate = "100/s")]
async fn limited(Order { id, .. }: Order) -> Result<u64> {
    Ok(id)
}

fn limit(order: &Order) -> u32 {
    1 + u32::from(order.locks.is_some())
}

fn key_of(order: &Order) -> LockKey {
    LockKey::from(format!("order:{}", order.id))
}

pub(crate) fn main() {
    support::run(async {
        use support::assert_send;
        let rest = || (Cell::new(1), (RefCell::new(1), 2));
        assert_eq!(assert_send(partial(order())).await.unwrap(), 8);
        let call = ignored(order(), rest().0, rest().1);
        assert_eq!(assert_send(call).await.unwrap(), 9);
        assert_eq!(assert_send(by_name(order())).await.unwrap(), 1);
        let call = by_expression(order(), Cell::new(1));
        assert_eq!(assert_send(call).await.unwrap(), 8);
        assert_eq!(assert_send(limited(order())).await.unwrap(), 7);
    });
}
