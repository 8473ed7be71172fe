//! The query of a store's URL: our own options, and those for the redis crate.

use std::time::Duration;

use lock_store::ConfigError;

use crate::config::{REPLICAS_TIMEOUT, Replicas};

/// The options that were not taken out yet.
pub(super) struct UrlOptions<'u>(Vec<&'u str>);

impl<'u> UrlOptions<'u> {
    pub(super) fn of(query: &'u str) -> Self {
        Self(query.split('&').collect())
    }

    /// Takes an option out. All its values, in order.
    pub(super) fn take(&mut self, name: &str) -> Vec<&'u str> {
        let mut values = Vec::new();
        self.0.retain(|option| {
            let value = option.split_once('=').filter(|(other, _)| *other == name);
            values.extend(value.map(|(_, value)| value));
            value.is_none()
        });
        values
    }

    /// Takes out which replicas are to confirm each hold.
    pub(super) fn take_replicas(&mut self) -> Result<Option<Replicas>, ConfigError> {
        let (counts, timeouts) = (self.take("replicas"), self.take("replicas_timeout"));
        let counts: Vec<u32> = counts
            .into_iter()
            .map(|value| {
                value.parse().map_err(|_| {
                    ConfigError::new(
                        "`replicas` in the store's URL is not a number; write `replicas=1`, or as many as are to confirm each lock",
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        let timeouts: Vec<Duration> = timeouts
            .into_iter()
            .map(|value| {
                duration(value).ok_or_else(|| {
                    ConfigError::new(
                        "`replicas_timeout` in the store's URL is not a time; write `100ms` or `1s`",
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        match (&counts[..], &timeouts[..]) {
            ([], []) => Ok(None),
            ([], [_]) => Err(ConfigError::new(
                "the store's URL has `replicas_timeout` without `replicas`; add `replicas=1`, or as many as are to confirm each lock",
            )),
            ([count], [] | [_]) => Ok(Some(Replicas {
                count: *count,
                timeout: timeouts.first().copied().unwrap_or(REPLICAS_TIMEOUT),
            })),
            _ => Err(ConfigError::new(
                "the store's URL gives `replicas` or `replicas_timeout` twice; leave one out",
            )),
        }
    }

    /// Whether all were taken out, but for empty ones.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|option| option.is_empty())
    }

    /// What is left, as it was written.
    pub(super) fn rest(&self) -> String {
        self.0.join("&")
    }
}

/// A whole number and its unit, as in the attribute, but one unit only.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn our_options_are_taken_out_and_others_stay() {
        let replicas = |count, ms| {
            let timeout = Duration::from_millis(ms);
            Some(Replicas { count, timeout })
        };
        for (query, rest, expected) in [
            ("", "", None),
            ("replicas=2", "", replicas(2, 100)),
            (
                "db=2&replicas=1&replicas_timeout=250ms&user=u",
                "db=2&user=u",
                replicas(1, 250),
            ),
            ("replicas_timeout=1s&replicas=1", "", replicas(1, 1000)),
        ] {
            let mut options = UrlOptions::of(query);
            assert_eq!(options.take_replicas().unwrap(), expected, "{query}");
            assert_eq!(options.rest(), rest, "{query}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_told() {
        for (query, says) in [
            ("replicas=", "not a number"),
            ("replicas=-1", "not a number"),
            ("replicas=one", "not a number"),
            ("replicas=1&replicas=1", "twice"),
            ("replicas_timeout=1s", "without `replicas`"),
            ("replicas=1&replicas_timeout=1", "not a time"),
            ("replicas=1&replicas_timeout=1d", "not a time"),
            ("replicas=1&replicas_timeout=s", "not a time"),
        ] {
            let error = UrlOptions::of(query).take_replicas().unwrap_err();
            assert!(error.to_string().contains(says), "{query}: {error}");
        }
    }
}
