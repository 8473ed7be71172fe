//! Many options at once.

#[path = "../support.rs"]
mod support;

use lock_runtime::{FencingToken, LockError, distributed_lock};

const NAME: &str = "const:<not a template>";

#[distributed_lock(key = NAME, lease = "1m30s", renew = true, max_hold = "5m", wait = "0s", reentrant = false)]
async fn one() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(
    key = "two",
    fair = true,
    wait = "forever",
    on_lost = "continue",
    hold_at_least = "10ms"
)]
async fn two() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "three", fence = token, guard = hold)]
async fn three() -> Result<FencingToken, LockError> {
    assert!(hold.is_held());
    let copy: FencingToken = token;
    Ok(copy)
}

pub(crate) fn main() {
    support::run(async {
        one().await.unwrap();
        two().await.unwrap();
        three().await.unwrap();
    });
}
