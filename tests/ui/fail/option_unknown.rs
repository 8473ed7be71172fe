//! Unknown options, things without a name, and all of it in one build.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(kye = "a", lease = "10s")]
async fn misspelt() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", ttl = "10s", banana = 1)]
async fn from_elsewhere() -> Result<()> {
    Ok(())
}

#[distributed_lock("stock:<id>", lease = "10s")]
async fn without_name(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a" lease = "10s")]
async fn without_comma() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", on_error = |error|)]
async fn half_a_value() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "<prodct_id>", leese = "10s", wait = "3 s", renew = 1, fence = token)]
async fn all_at_once(product_id: u64) -> Result<lock_runtime::FencingToken> {
    Ok(token)
}

fn main() {
    // The functions are there: none of this is one more error.
    let _ = (misspelt(), from_elsewhere(), without_name(1), without_comma(), half_a_value(), all_at_once(1));
}
