//! Mistakes in `on_error`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_error = handle, on_error = handle)]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_error, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_error = "skip")]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", on_error = 1 + 1)]
async fn not_callable() -> u32 {
    1
}

#[distributed_lock(key = "a", on_error = |error| error.to_string())]
async fn wrong_type() -> u32 {
    1
}

fn handle(_: LockError) -> u64 {
    0
}

#[distributed_lock(key = "a", on_error = handle)]
async fn wrong_function() -> u32 {
    1
}

#[distributed_lock(key = "a", on_error = |_| drop(name))]
async fn takes_what_the_body_takes(name: String) {
    drop(name);
}

fn main() {}
