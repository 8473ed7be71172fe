//! `fence`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", fence = token, fence = token)]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", fence = "token")]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", fence, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
