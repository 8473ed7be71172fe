//! Options that contradict each other or the parameters.

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "account:<from>", keys = ["account:<to>"])]
async fn key_with_keys(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], mode = "read")]
async fn keys_with_read(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], mode = "write")]
async fn keys_with_write(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], permits = 5)]
async fn keys_with_permits(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", mode = "read", permits = 5)]
async fn mode_with_permits() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", mode = "exclusive", permits = 5)]
async fn exclusive_mode_with_permits() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", max_hold = "1ms")]
async fn max_hold_shorter_than_any_lease() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10s", renew = true, max_hold = "9s")]
async fn max_hold_shorter_than_lease() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10s", max_hold = "5m")]
async fn max_hold_with_fixed_lease() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", renew = false, max_hold = "5m")]
async fn max_hold_with_renew_false() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", wait = "forever", on_busy = "skip")]
async fn skip_with_wait_forever() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", fence = lock, guard = lock)]
async fn fence_and_guard_of_one_name() -> Result<(), LockError> {
    let _ = lock;
    Ok(())
}

#[distributed_lock(key = "a:<id>", fence = id)]
async fn fence_hides_parameter(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:<to>"], fence = from)]
async fn fence_hides_parameter_of_keys(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", guard = sku)]
async fn guard_hides_parameter((sku, _): (u64, u64)) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a", lease = "10s", max_hold = LONGEST)]
async fn max_hold_given_by_a_constant_without_renewal() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
