//! `key`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "b", key = "b")]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = 42)]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
