//! Bodies that are not `Send`, on a current-thread runtime and as tasks of its `LocalSet`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock};
use std::cell::Cell;
use std::rc::Rc;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::LocalSet;

#[distributed_lock(key = "local:<n>")]
async fn not_send(n: u32) -> Result<u32, LockError> {
    let shared = Rc::new(n);
    tokio::task::yield_now().await;
    Ok(*shared)
}

#[distributed_lock(key = "local")]
async fn counts_unlocked(count: Rc<Cell<u32>>) -> Result<(), LockError> {
    let before = count.get();
    tokio::task::yield_now().await;
    count.set(before + 1);
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        let flavor = Handle::current().runtime_flavor();
        assert_eq!(flavor, RuntimeFlavor::CurrentThread);
        assert_eq!(not_send(2).await.unwrap(), 2);

        let client = LockClient::in_memory();
        let count = Rc::new(Cell::new(0));
        let tasks = LocalSet::new();
        for _ in 0..3 {
            let (client, count) = (client.clone(), Rc::clone(&count));
            tasks.spawn_local(async move {
                client.scope(counts_unlocked(count)).await.unwrap();
            });
        }
        tasks.await;
        assert_eq!(count.get(), 3);
    });
}
