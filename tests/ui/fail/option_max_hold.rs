//! `max_hold`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", lease = "1s", renew = true, max_hold = "5m", max_hold = "5m")]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", max_hold = 300)]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", max_hold, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
