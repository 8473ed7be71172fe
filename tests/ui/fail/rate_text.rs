//! Rates that are none.

use lock_runtime::{LockError, rate_limited};

type Result<T> = std::result::Result<T, LockError>;

#[rate_limited(key = "a", rate = "")]
async fn empty() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "100")]
async fn without_time() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "100 per s")]
async fn spoken() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "100/min")]
async fn other_unit() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "10/day")]
async fn days() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "0.5/s")]
async fn fraction() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "0/s")]
async fn zero() -> Result<()> {
    Ok(())
}

#[rate_limited(key = "a", rate = "10000000/s")]
async fn too_fast() -> Result<()> {
    Ok(())
}

fn main() {}
