//! Mistakes in `key`.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "b", key = "b")]
async fn doubled() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key, fair = true)]
async fn without_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = 42)]
async fn wrong_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = 1.5)]
async fn fraction() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "")]
async fn empty() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock]
async fn missing(_first: u8, id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(lease = "10s")]
async fn missing_without_parameters() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(
    key = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
)]
async fn too_long() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "%queue")]
async fn reserved() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "<a><b>")]
async fn not_separated(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "x:<a>-<b>")]
async fn badly_separated(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "{a}:{b}")]
async fn two_tags() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "{}:<id>")]
async fn empty_tag(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = id)]
async fn not_a_key(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "lock:%queue:x")]
async fn helper_key() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
