//! `on_busy`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", on_busy = "error", on_busy = "error")]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", on_busy = skip)]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", on_busy, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
