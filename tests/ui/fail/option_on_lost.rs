//! `on_lost`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", on_lost = "cancel", on_lost = "cancel")]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", on_lost = "stop")]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", on_lost, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
