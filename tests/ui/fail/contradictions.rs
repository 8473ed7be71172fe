//! Options that contradict each other.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a", wait = "forever", on_busy = "skip")]
async fn never_skipped() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10s", max_hold = "5m")]
async fn not_renewed() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", renew = false, max_hold = "5m")]
async fn renewal_switched_off() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10s", renew = true, max_hold = "9s")]
async fn shorter_than_its_lease() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", max_hold = "1ms")]
async fn shorter_than_any_lease() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a", fence = lock, guard = lock)]
async fn one_name() -> Result<()> {
    let _ = lock;
    Ok(())
}

#[distributed_lock(key = "a:<id>", fence = id, guard = sku)]
async fn hidden_parameters(id: u64, (sku, _): (u64, u64)) -> Result<()> {
    Ok(())
}

fn main() {}
