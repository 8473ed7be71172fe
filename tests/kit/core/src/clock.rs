//! One clock for all processes, and the clock of a runtime, for stores.

use lock_store::Instant;
use nix::time::{ClockId, clock_gettime};

/// The machine's monotonic clock, in nanoseconds. It is the same for all processes.
///
/// # Panics
/// On a system without such a clock.
#[must_use]
pub fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a monotonic clock");
    u64::try_from(std::time::Duration::from(now).as_nanos())
        .expect("less than 500 years since boot")
}

/// The present time on the clock of the current runtime, which may be paused.
#[must_use]
pub fn runtime_now() -> Instant {
    Instant::from_std(tokio::time::Instant::now().into_std())
}

/// Sleeps until then, by the clock of the current runtime.
pub async fn sleep_until(at: Instant) {
    let (now, alarms_now) = (runtime_now(), tokio::time::Instant::now());
    let alarm = match at.checked_duration_since(now) {
        Some(left) => alarms_now + left,
        None => alarms_now - (now - at),
    };
    tokio::time::sleep_until(alarm).await;
}
