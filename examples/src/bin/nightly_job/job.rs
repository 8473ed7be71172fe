//! The job. Its attribute is all that the other processes need.

use std::time::Duration;

use lock_runtime::{LockError, distributed_lock};

/// What [`close_the_day`] writes as `hold_at_least`. If it were shorter than the clocks are apart,
/// a slow clock would find the lock free again. If it were longer than the time between two ticks,
/// the next night would find the lock still taken.
pub(crate) const HOLD_AT_LEAST: Duration = Duration::from_secs(4);

/// The first process runs it. The others find the lock busy and skip: `None`. The job is done in a
/// moment, but the key stays taken until the slowest clock has struck as well.
#[distributed_lock(
    key = "job:nightly:<shop>",
    wait = "0s",
    on_busy = "skip",
    hold_at_least = "4s"
)]
pub(crate) async fn close_the_day(shop: u64) -> Result<Option<Closed>, LockError> {
    work().await;
    Ok(Some(Closed))
}

/// The same without `hold_at_least`: one process at a time, but each gets its turn.
#[distributed_lock(key = "job:nightly:<shop>", wait = "0s", on_busy = "skip")]
pub(crate) async fn close_the_day_without_hold(shop: u64) -> Result<Option<Closed>, LockError> {
    work().await;
    Ok(Some(Closed))
}

/// The books of the day are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

async fn work() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[cfg(test)]
mod tests {
    use lock_runtime::LockClient;

    use super::*;

    #[tokio::test]
    async fn the_key_is_kept_as_long_as_the_constant_says() -> Result<(), LockError> {
        let locks = LockClient::in_memory();
        let closed = locks.scope(close_the_day(1)).await?;
        let left = locks.inspect("job:nightly:1").await?.remaining;
        let (again, kept) = (
            locks.scope(close_the_day(1)).await?,
            left.unwrap_or_default(),
        );
        assert_eq!((closed, again), (Some(Closed), None));
        assert!(
            kept <= HOLD_AT_LEAST && kept > HOLD_AT_LEAST - Duration::from_secs(1),
            "{kept:?}"
        );
        Ok(())
    }
}
