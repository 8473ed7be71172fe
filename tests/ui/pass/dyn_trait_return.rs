//! `dyn Trait` in the return type: each `return` is converted by itself.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "coerced")]
async fn coerced(a: u8) -> Result<Box<dyn Fn() -> u8 + Send>, LockError> {
    if a == 0 {
        return Ok(Box::new(|| 0));
    }
    Ok(Box::new(move || a))
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(coerced(0).await.unwrap()(), 0);
        assert_eq!(coerced(3).await.unwrap()(), 3);
    });
}
