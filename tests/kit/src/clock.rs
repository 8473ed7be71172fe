//! One clock for all processes, and the one of a runtime, as a store is told it.

use lock_store::Instant;
use nix::time::{ClockId, clock_gettime};

/// The machine's monotonic clock, in nanoseconds: comparable between processes.
///
/// # Panics
/// On a system without one.
#[must_use]
pub fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a monotonic clock");
    u64::try_from(std::time::Duration::from(now).as_nanos())
        .expect("less than 500 years since boot")
}

/// What the machine's clock says, which its servers go by, too: microseconds since 1970.
///
/// # Panics
/// On a system whose clock stands before that.
#[must_use]
pub fn wall_micros() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("a clock");
    u64::try_from(std::time::Duration::from(now).as_micros()).expect("a time after 1970")
}

/// Now, on the clock of the runtime that this runs on, which may be paused.
#[must_use]
pub fn runtime_now() -> Instant {
    Instant::from_std(tokio::time::Instant::now().into_std())
}

/// Sleeps until then, by the clock of the runtime that this runs on.
pub async fn sleep_until(at: Instant) {
    let (now, alarms_now) = (runtime_now(), tokio::time::Instant::now());
    let alarm = match at.checked_duration_since(now) {
        Some(left) => alarms_now + left,
        None => alarms_now - (now - at),
    };
    tokio::time::sleep_until(alarm).await;
}
