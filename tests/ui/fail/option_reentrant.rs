//! `reentrant`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", reentrant = true, reentrant = true)]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", reentrant = 1)]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", reentrant, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
