//! [`Rate`]: how many may pass in how long, and how many at once.

use std::time::Duration;

use crate::error::LockError;

/// A bucket gets a token back at most this often. So rounding up to nanoseconds costs at most 0.1
/// %.
const MIN_INTERVAL: Duration = Duration::from_micros(1);
/// An empty bucket is full again after at most this long.
const MAX_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many may pass in how long, and how many at once: `Rate::per_second(100).burst(20)`.
///
/// A full bucket holds `burst` tokens. It gets one back every `1/100` of a second: evenly, not all
/// at the end of each second. So in any time `t` at most `rate × t + burst` pass.
///
/// A rate is between 1 000 000 a second and one in 30 days. An empty bucket must be full again in
/// 30 days. Anything else is [`LockError::Config`] when it is used. To limit bytes, count in KiB.
///
/// # Default
/// The burst is the number of the rate, as in the crate `governor`: `per_second(100)` lets 100 pass
/// at once after a second without any, and `per_hour(1000)` lets 1000. `burst(1)` spaces them
/// evenly.
///
/// Burst means how many can pass at once. The libraries `throttled` and `redis-cell` call one less
/// than that `max_burst`.
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// use lock_runtime::Rate;
/// const API: Rate = Rate::per_second(100).burst(20);
/// const MAILS: Rate = Rate::per(10, Duration::from_millis(500));
/// assert_eq!(Rate::per_minute(60), Rate::per(60, Duration::from_secs(60)));
/// # let _ = (API, MAILS);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Rate {
    tokens: u32,
    per: Duration,
    burst: u32,
}

impl Rate {
    /// `tokens` a second; the burst is as large.
    pub const fn per_second(tokens: u32) -> Self {
        Self::per(tokens, Duration::from_secs(1))
    }

    /// `tokens` a minute; the burst is as large.
    pub const fn per_minute(tokens: u32) -> Self {
        Self::per(tokens, Duration::from_secs(60))
    }

    /// `tokens` an hour; the burst is as large.
    pub const fn per_hour(tokens: u32) -> Self {
        Self::per(tokens, Duration::from_secs(60 * 60))
    }

    /// `tokens` in any other time; the burst is as large.
    pub const fn per(tokens: u32, per: Duration) -> Self {
        Self {
            tokens,
            per,
            burst: tokens,
        }
    }

    /// How many can pass at once when none has passed for a while, at least 1.
    pub const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// How long the bucket takes to get a token back, and how many it holds, if that can work for
    /// this many at once.
    pub(crate) fn resolve(&self, tokens: u32) -> Result<(Duration, u32), LockError> {
        let Self { per, burst, .. } = *self;
        let shown = || format!("the rate limit of {} per {per:?}", self.tokens);
        if self.tokens == 0 || per.is_zero() || burst == 0 {
            return Err(LockError::config(format!(
                "{} with a burst of {burst}: each of the three numbers must be at least 1, or \
                 nothing ever passes",
                shown()
            )));
        }
        let nanos = per.as_nanos().div_ceil(u128::from(self.tokens));
        let interval = u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos);
        if per < MIN_INTERVAL * self.tokens {
            return Err(LockError::config(format!(
                "{} is more than 1000000 a second: count in larger units, as KiB instead of bytes",
                shown()
            )));
        }
        if interval
            .checked_mul(burst)
            .is_none_or(|window| window > MAX_WINDOW)
        {
            return Err(LockError::config(format!(
                "{} with a burst of {burst} takes longer than 30 days from empty to full: write a \
                 faster rate or a smaller burst",
                shown()
            )));
        }
        if tokens > burst {
            return Err(LockError::config(format!(
                "{tokens} at once can never pass {} with a burst of {burst}: write a larger \
                 burst, or ask for fewer",
                shown()
            )));
        }
        Ok((interval, burst))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn interval(rate: Rate) -> Duration {
        rate.resolve(1).unwrap().0
    }

    #[test]
    fn intervals_are_rounded_up_so_that_the_rate_is_never_exceeded() {
        assert_eq!(interval(Rate::per_second(100)), Duration::from_millis(10));
        assert_eq!(
            interval(Rate::per_second(3)),
            Duration::from_nanos(333_333_334)
        );
        assert_eq!(interval(Rate::per_minute(60)), Duration::from_secs(1));
        assert_eq!(interval(Rate::per_hour(1000)), Duration::from_millis(3600));
        assert_eq!(
            interval(Rate::per_second(1_000_000)),
            Duration::from_micros(1)
        );
        assert_eq!(interval(Rate::per(1, 30 * DAY)), 30 * DAY);
    }

    #[test]
    fn the_burst_is_the_number_of_the_rate_unless_given() {
        assert_eq!(Rate::per_second(100).resolve(100).unwrap().1, 100);
        assert_eq!(Rate::per_second(100).burst(7).resolve(7).unwrap().1, 7);
    }

    #[test]
    fn what_cannot_work_is_a_config_error_that_says_why() {
        let cases = [
            (Rate::per_second(0), 1, "at least 1"),
            (Rate::per(1, Duration::ZERO), 1, "at least 1"),
            (Rate::per_second(1).burst(0), 1, "at least 1"),
            (Rate::per_second(1_000_001), 1, "larger units"),
            (
                Rate::per(u32::MAX, Duration::from_nanos(1)),
                1,
                "larger units",
            ),
            (Rate::per(1, 31 * DAY), 1, "30 days"),
            (Rate::per(1, Duration::MAX), 1, "30 days"),
            (Rate::per(10, DAY).burst(301), 1, "30 days"),
            (Rate::per(10, DAY).burst(u32::MAX), 1, "30 days"),
            (Rate::per_second(10), 11, "can never pass"),
        ];
        for (rate, tokens, why) in cases {
            let error = rate.resolve(tokens).unwrap_err();
            assert!(matches!(error, LockError::Config { .. }));
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(Rate::per(10, DAY).burst(300).resolve(300).is_ok());
    }
}
