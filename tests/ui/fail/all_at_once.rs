//! Many mistakes, in one attribute or many: one build reports all, and none causes another error.

use lock_runtime::{LockError, distributed_lock, rate_limited};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "<prodct_id>", leese = "10s", wait = "3 s", renew = 1, fence = token)]
async fn all_at_once(product_id: u64) -> Result<lock_runtime::FencingToken> {
    Ok(token)
}

#[distributed_lock(key = "a", lease = "10", wait = "1.5s", hold_at_least = "10sec")]
async fn bad_durations() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "%a:<1 2>:<id +>:<f(id)>")]
async fn bad_placeholders(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<id>", fence = id, guard = sku, wait = "forever", on_busy = "skip", max_hold = "1ms")]
async fn contradictions(id: u64, (sku, _): (u64, u64)) -> Result<()> {
    Ok(())
}

#[distributed_lock(kye = "a", ttl = "10s", banana = 1)]
async fn unknown() -> Result<()> {
    Ok(())
}

#[distributed_lock("stock:<id>", lease = "10s", lease = "10s")]
async fn without_name(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a" lease = "0s", on_error = |error|)]
async fn half_written() -> Result<()> {
    Ok(())
}

#[distributed_lock(lease = "10s", fair)]
fn not_even_async() -> Result<()> {
    Ok(())
}

#[distributed_lock(
    keys = ["account:<form>", "", 5, "<from>-<to>", "a:<", "a:<", to, "ledger:<book>"],
    permits = 0,
    mode = "reed",
    fence = tokens
)]
async fn bad_keys(from: u64, to: u64) -> Result<lock_runtime::FencingToken> {
    let [_, _, third, ..] = tokens;
    Ok(third)
}

#[distributed_lock(key = "a:<b>", keys = ["c:<d>"], mode = "read", permits = 5)]
async fn too_many_kinds(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "")]
struct Structure;

#[rate_limited(key = "<ap_id>", rate = "1/sec", burst = 0, wiat = "0s")]
async fn limited_all_at_once(app_id: u64) -> Result<()> {
    Ok(())
}

#[rate_limited]
async fn limited_by_nothing(app_id: u64) -> Result<()> {
    Ok(())
}

#[rate_limited(kye = "a", limit = 3, lease = "10s", banana = 1, "100/s", burst)]
async fn limited_by_unknown() -> Result<()> {
    Ok(())
}

fn main() {
    // All of these exist in spite of the mistakes.
    let _ = (
        all_at_once(1),
        bad_durations(),
        bad_placeholders(1),
        contradictions(1, (2, 3)),
    );
    let _ = (
        unknown(),
        without_name(1),
        half_written(),
        not_even_async(),
        Structure,
    );
    let _ = (
        limited_all_at_once(1),
        limited_by_nothing(1),
        limited_by_unknown(),
    );
}
