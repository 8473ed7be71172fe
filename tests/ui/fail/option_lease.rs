//! `lease`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", lease = "20s", lease = "20s")]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease = 10)]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
