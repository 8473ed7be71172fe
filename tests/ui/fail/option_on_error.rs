//! `on_error`: given twice, with a value of the wrong kind, and without one.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", on_error = handle, on_error = handle)]
async fn doubled() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", on_error = "skip")]
async fn wrong() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", on_error, fair = true)]
async fn without_value() -> Result<()> {
    Ok(())
}

fn main() {}
