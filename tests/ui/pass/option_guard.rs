//! `guard`: a `&Guard` of that name in the body.

#[path = "../support.rs"]
mod support;

use lock_runtime::{Guard, LockError, distributed_lock};

#[distributed_lock(key = "a", guard = hold)]
async fn guarded() -> Result<bool, LockError> {
    let guard: &Guard = hold;
    Ok(guard.is_held())
}

fn hold(id: u64) -> String {
    format!("b:{id}")
}

// The option means the function.
#[distributed_lock(key = hold(id), guard = hold)]
async fn of_a_name_that_an_option_uses(id: u64) -> Result<String, LockError> {
    Ok(hold.key().to_string())
}

pub(crate) fn main() {
    support::run(async {
        assert!(guarded().await.unwrap());
        assert_eq!(of_a_name_that_an_option_uses(1).await.unwrap(), "b:1");
    });
}
