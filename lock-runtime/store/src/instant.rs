//! [`Instant`]: a moment on a clock that continues while the machine is suspended.
//!
//! On Linux and Apple's systems, [`std::time::Instant`] stands still while the machine sleeps. A
//! store's clock continues. So a lease that ended during the sleep would still be trusted. Boot
//! time counts the sleep. Other systems use std's clock; that of Windows counts the sleep.
#![expect(clippy::disallowed_types, reason = "what it stands for")]

use std::ops::{Add, AddAssign, Sub};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// A moment on the machine's monotonic clock, which counts the time of suspension.
///
/// It is used like std's type, with one difference: a sum outside its range of 292 years each way
/// becomes the end of the range, and does not panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// Nanoseconds since the machine started.
    nanos: i64,
}

impl Instant {
    /// The present moment.
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        // A system either has this clock or lacks it, so the two are never mixed.
        Self::since_boot().unwrap_or_else(|| Self::from_std(std::time::Instant::now()))
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    #[inline]
    fn since_boot() -> Option<Self> {
        use nix::sys::time::TimeValLike;
        use nix::time::ClockId;

        #[cfg(not(target_vendor = "apple"))]
        const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
        // `mach_continuous_time`. (`CLOCK_MONOTONIC` counts the sleep there too, but changes when
        // the wall clock is set.)
        #[cfg(target_vendor = "apple")]
        const CLOCK: ClockId = ClockId::from_raw(nix::libc::CLOCK_MONOTONIC_RAW);

        let nanos = CLOCK.now().ok()?.num_nanoseconds();
        Some(Self { nanos })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    fn since_boot() -> Option<Self> {
        None
    }

    /// A moment as a store has written it down: nanoseconds since the machine started, or since any
    /// other moment, if no clock but the store's is meant.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// See [`from_nanos`](Self::from_nanos).
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// Converts a moment of std's clock. Correct if the machine has not slept since the first call.
    /// For simulated clocks, and for systems without a better one.
    #[must_use]
    pub fn from_std(at: std::time::Instant) -> Self {
        static ORIGIN: OnceLock<(std::time::Instant, Instant)> = OnceLock::new();
        let (std, own) = *ORIGIN.get_or_init(|| {
            let own = Self::since_boot().unwrap_or(Self { nanos: 0 });
            (std::time::Instant::now(), own)
        });
        match at.checked_duration_since(std) {
            Some(later) => own + later,
            None => own - std.duration_since(at),
        }
    }

    /// The time since an earlier moment, or `None` if that was later.
    #[inline]
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        let nanos = self.nanos.saturating_sub(earlier.nanos);
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// The time since an earlier moment, or zero if that was later.
    #[inline]
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// The moment this much later, or `None` outside the range.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        let nanos = i64::try_from(duration.as_nanos()).ok()?;
        let nanos = self.nanos.checked_add(nanos)?;
        Some(Self { nanos })
    }

    /// The moment this much earlier, or `None` outside the range.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        let nanos = i64::try_from(duration.as_nanos()).ok()?;
        let nanos = self.nanos.checked_sub(nanos)?;
        Some(Self { nanos })
    }

    /// The time since this moment, or zero if it is in the future.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }
}

/// As whole nanoseconds, at most 292 years.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// As whole microseconds, at most 292,000 years.
#[doc(hidden)]
#[must_use]
pub fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The wall clock, in microseconds since 1970.
#[doc(hidden)]
#[must_use]
pub fn wall_micros() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(0))
}

impl Add<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        let nanos = self.nanos.saturating_add(nanos(duration));
        Self { nanos }
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn sub(self, duration: Duration) -> Self {
        let nanos = self.nanos.saturating_sub(nanos(duration));
        Self { nanos }
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// As [`saturating_duration_since`](Self::saturating_duration_since).
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// `/proc/uptime` counts the time for which the machine was suspended.
    #[cfg(target_os = "linux")]
    #[test]
    fn it_counts_from_the_start_of_the_machine() {
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").unwrap();
            let seconds = text.split_whitespace().next().unwrap().parse().unwrap();
            Instant { nanos: 0 } + Duration::from_secs_f64(seconds)
        };
        let (before, now, after) = (uptime(), Instant::now(), uptime());
        // It has a resolution of a hundredth of a second.
        let after = after + Duration::from_millis(10);
        assert!(
            before <= now && now <= after,
            "{before:?} {now:?} {after:?}"
        );
    }

    #[test]
    fn it_is_reckoned_with_as_the_one_of_std() {
        let now = Instant::now();
        assert_eq!((now + HOUR) - now, HOUR);
        assert_eq!(now - (now + HOUR), Duration::ZERO);
        assert_eq!((now + HOUR).checked_duration_since(now), Some(HOUR));
        assert_eq!(now.checked_duration_since(now + HOUR), None);
        assert_eq!((now - 1000 * HOUR) + 1000 * HOUR, now);
        assert!(now - HOUR < now && now < now + HOUR);
        let std = std::time::Instant::now();
        let own = Instant::from_std(std);
        assert_eq!(Instant::from_std(std + HOUR), own + HOUR);
        assert_eq!(Instant::from_std(std - HOUR / 60), own - HOUR / 60);
    }

    #[test]
    fn a_sum_ends_where_its_range_does() {
        let now = Instant::now();
        assert_eq!(now.checked_add(HOUR), Some(now + HOUR));
        assert_eq!(now.checked_sub(HOUR), Some(now - HOUR));
        assert_eq!(now.checked_add(Duration::MAX), None);
        assert_eq!(now.checked_sub(Duration::MAX), None);
        assert_eq!(now + Duration::MAX, Instant { nanos: i64::MAX });
        assert_eq!(
            (now - Duration::MAX) - Duration::MAX,
            Instant { nanos: i64::MIN }
        );
    }
}
