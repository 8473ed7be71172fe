//! `hold_at_least`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", hold_at_least = "5s", hold_at_least = "5s")]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least = "5")]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", hold_at_least, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
