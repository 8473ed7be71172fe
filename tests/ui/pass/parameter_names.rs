//! Parameters with names that the expansion could use itself, or that the body shadows.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<a>")]
async fn shadowed(a: u32) -> Result<u32, LockError> {
    let a = a + 1;
    Ok(a)
}

#[distributed_lock(key = "key:<key>:<guard>")]
async fn names_like_ours(
    key: u8,
    guard: u8,
    error: u8,
    value: u8,
    client: u8,
) -> Result<u8, LockError> {
    Ok(key + guard + error + value + client)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(shadowed(1).await.unwrap(), 2);
        assert_eq!(names_like_ours(1, 2, 3, 4, 5).await.unwrap(), 15);
    });
}
