//! [`Rate`]: how many may pass in how long.

use std::time::Duration;

use lock_store::{LockKey, MAX_EXACT, RateRequest};

use crate::error::LockError;

/// A bucket gets a token back at most this often. So rounding up to nanoseconds costs at most 0.1
/// %.
const MIN_INTERVAL: Duration = Duration::from_micros(1);
/// The shortest window of an exact limit.
const MIN_WINDOW: Duration = Duration::from_millis(1);
/// An empty bucket is full again after at most this long, and an exact limit's window is no longer.
const MAX_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many may pass in how long: `Rate::per_second(100).burst(20)`, or exactly
/// `Rate::at_most(100, Duration::from_secs(1))`.
///
/// | | in any time `t` at most | in a second at most |
/// |---|--:|--:|
/// | `per_second(100)` | `100 × t + 100` | 200 |
/// | `per_second(100).burst(20)` | `100 × t + 20` | 120 |
/// | `at_most(100, Duration::from_secs(1))` | | 100 |
///
/// The first two are a bucket. A full one holds `burst` tokens. It gets one back every `1/100` of a
/// second: evenly, not all at the end of each second. So a partner who counts 100 in each second
/// refuses some calls. For such a hard limit take [`at_most`](Self::at_most).
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
    is_exact: bool,
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
            is_exact: false,
        }
    }

    /// Never more than `tokens` in any window of this length, wherever it begins. They are at most
    /// 10 000, the window from 1 ms to 30 days, counted in whole microseconds.
    ///
    /// - The time is that of the store's clock when it lets a call pass. On the way to the partner,
    ///   calls can come closer together or further apart.
    /// - Up to a limit of 100 the store keeps the time of each call. Above, calls within a
    ///   hundredth of the window share one, and a call may be refused for that much longer. A
    ///   limiter keeps at most 16 bytes for each call of its limit, and some dozens of its own.
    /// - After the store's clock was set back, what passed before counts as if it had passed just
    ///   now: nobody is refused for longer than a window. A clock that is set forward ends windows
    ///   early.
    /// - All users of a key give the same limit. Where two are in use, as during a roll-out, the
    ///   one with the longer window may miss calls that the other has forgotten. A bucket with the
    ///   same key counts apart.
    ///
    /// An engine that can't do it refuses it with [`LockError::Config`]:
    /// [engines](crate::guide::engines).
    pub const fn at_most(tokens: u32, window: Duration) -> Self {
        Self {
            is_exact: true,
            ..Self::per(tokens, window)
        }
    }

    /// How many can pass at once when none has passed for a while, at least 1. An exact limit has
    /// no burst of its own.
    pub const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// The question to the store, if that can work for this many at once.
    pub(crate) fn request(&self, key: LockKey, tokens: u32) -> Result<RateRequest, LockError> {
        let mut request = if self.is_exact {
            let (limit, window) = self.resolve_exact(tokens)?;
            RateRequest::at_most(key, limit, window)
        } else {
            let (interval, burst) = self.resolve(tokens)?;
            RateRequest::new(key, interval, burst)
        };
        request.tokens = tokens;
        Ok(request)
    }

    fn resolve_exact(&self, tokens: u32) -> Result<(u32, Duration), LockError> {
        let Self { per, burst, .. } = *self;
        let limit = self.tokens;
        let wrong = if limit == 0 || limit > MAX_EXACT {
            format!("an exact limit is 1 to {MAX_EXACT}: give another number, or a `rate`")
        } else if !(MIN_WINDOW..=MAX_WINDOW).contains(&per) {
            "the window of an exact limit is 1 ms to 30 days: give another one".to_owned()
        } else if burst != limit {
            "an exact limit has no burst: leave it out".to_owned()
        } else if tokens > limit {
            format!("{tokens} at once can never pass: give a larger limit, or ask for fewer")
        } else {
            let micros = per.as_nanos().div_ceil(1_000);
            let window = u64::try_from(micros).map_or(MAX_WINDOW, Duration::from_micros);
            return Ok((limit, window));
        };
        Err(LockError::config(format!(
            "the rate limit of at most {limit} in {per:?}: {wrong}"
        )))
    }

    /// How long the bucket takes to get a token back, and how many it holds, if that can work for
    /// this many at once.
    fn resolve(&self, tokens: u32) -> Result<(Duration, u32), LockError> {
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

    #[test]
    fn an_exact_limit_that_cannot_work_is_a_config_error_that_says_why() {
        let second = Duration::from_secs(1);
        let micro = Duration::from_micros(1);
        for (rate, tokens, why) in [
            (Rate::at_most(0, second), 0, "1 to 10000"),
            (Rate::at_most(10_001, second), 1, "1 to 10000"),
            (Rate::at_most(1, Duration::ZERO), 1, "1 ms to 30 days"),
            (Rate::at_most(1, 30 * DAY + micro), 1, "1 ms to 30 days"),
            (Rate::at_most(5, second).burst(6), 1, "no burst"),
            (Rate::at_most(5, second), 6, "can never pass"),
        ] {
            let error = rate.request("k".into(), tokens).unwrap_err();
            assert!(matches!(error, LockError::Config { .. }));
            assert!(error.to_string().contains(why), "{error}");
        }
        let window = |rate: Rate| rate.request("k".into(), 1).unwrap().window;
        assert_eq!(window(Rate::at_most(10_000, 30 * DAY)), Some(30 * DAY));
        let third = Duration::from_nanos(1_000_001);
        assert_eq!(window(Rate::at_most(5, third)), Some(1001 * micro));
        assert_eq!(window(Rate::per_second(5)), None);
    }
}
