//! One clock for all processes.

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
