//! A `Uuid`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};
use uuid::Uuid;

#[distributed_lock(key = "id:<id>", guard = lock)]
async fn by_id(id: Uuid) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let key = by_id(Uuid::nil()).await.unwrap();
        assert_eq!(
            key,
            LockKey::from("id:00000000-0000-0000-0000-000000000000")
        );
    });
}
