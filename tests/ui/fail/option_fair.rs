//! `fair`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", fair = true, fair = true)]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", fair = "true")]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", fair, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
