//! What the query of a URL says to us and not to the redis crate.

use std::time::Duration;

use lock_store::ConfigError;

use crate::config::{REPLICAS_TIMEOUT, Replicas};

/// The URL without our own options, and what they say.
pub(super) fn split(url: &str) -> Result<(String, Option<Replicas>), ConfigError> {
    let Some((rest, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), None));
    };
    let (mut count, mut timeout, mut others) = (None, None, Vec::new());
    for option in query.split('&') {
        let twice = match option.split_once('=') {
            Some(("replicas", value)) => count.replace(number(value)?).is_some(),
            Some(("replicas_timeout", value)) => timeout.replace(timeout_of(value)?).is_some(),
            _ => {
                others.push(option);
                false
            }
        };
        if twice {
            return Err(ConfigError::new(
                "the store's URL gives `replicas` or `replicas_timeout` twice; leave one out",
            ));
        }
    }
    let replicas = match (count, timeout) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(ConfigError::new(
                "the store's URL has `replicas_timeout` without `replicas`; add `replicas=1`, or as many as are to confirm each lock",
            ));
        }
        (Some(count), timeout) => Some(Replicas {
            count,
            timeout: timeout.unwrap_or(REPLICAS_TIMEOUT),
        }),
    };
    let url = match others.is_empty() {
        true => rest.to_owned(),
        false => format!("{rest}?{}", others.join("&")),
    };
    Ok((url, replicas))
}

fn number(value: &str) -> Result<u32, ConfigError> {
    value.parse().map_err(|_| {
        ConfigError::new(
            "`replicas` in the store's URL is not a number; write `replicas=1`, or as many as are to confirm each lock",
        )
    })
}

fn timeout_of(value: &str) -> Result<Duration, ConfigError> {
    duration(value).ok_or_else(|| {
        ConfigError::new(
            "`replicas_timeout` in the store's URL is not a time; write `100ms` or `1s`",
        )
    })
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
        for (url, rest, expected) in [
            ("redis://h/3", "redis://h/3", None),
            ("redis://h/?replicas=2", "redis://h/", replicas(2, 100)),
            (
                "redis+unix:///s?db=2&replicas=1&replicas_timeout=250ms&user=u",
                "redis+unix:///s?db=2&user=u",
                replicas(1, 250),
            ),
            (
                "redis-cluster://h1,h2?replicas_timeout=1s&replicas=1",
                "redis-cluster://h1,h2",
                replicas(1, 1000),
            ),
        ] {
            assert_eq!(split(url).unwrap(), (rest.to_owned(), expected), "{url}");
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
            let error = split(&format!("redis://u:canary@h?{query}")).unwrap_err();
            assert!(error.to_string().contains(says), "{query}: {error}");
            assert!(!error.to_string().contains("canary"), "{error}");
        }
    }
}
