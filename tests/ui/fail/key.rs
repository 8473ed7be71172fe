//! What can be wrong with a key.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock]
async fn missing(_first: u8, id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(lease = "10s")]
async fn missing_without_parameters() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "")]
async fn empty() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "%queue")]
async fn reserved() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "{a}:{b}")]
async fn two_tags() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "{}:<id>")]
async fn empty_tag(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")]
async fn too_long() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "<a><b>")]
async fn not_separated(a: u64, b: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "x:<a>-<b>")]
async fn badly_separated(a: u64, b: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = 1.5)]
async fn number() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = id)]
async fn not_a_key(id: u64) -> Result<()> {
    Ok(())
}

fn main() {}
