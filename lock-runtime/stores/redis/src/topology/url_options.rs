//! The query of a store's URL: our own options and those of the redis crate.

use std::time::Duration;

use lock_store::ConfigError;

use crate::config::{REPLICAS_TIMEOUT, Replicas};

/// Options that the client takes out of the URL itself.
const OF_THE_CLIENT: [&str; 3] = ["namespace", "name", "layout"];
/// Values that may be part of a user or password, unescaped. They are never repeated.
const CREDENTIALS: [&str; 4] = ["user=", "pass=", "sentinel_user=", "sentinel_password="];

/// The options that were not taken out yet.
pub(super) struct UrlOptions<'u> {
    left: Vec<&'u str>,
    has_credentials: bool,
}

impl<'u> UrlOptions<'u> {
    pub(super) fn of(query: &'u str) -> Self {
        let left: Vec<&str> = query.split('&').collect();
        let has = |option: &&str| CREDENTIALS.iter().any(|name| option.starts_with(name));
        Self {
            has_credentials: left.iter().any(has),
            left,
        }
    }

    /// Takes out an option that may be given once.
    pub(super) fn take_one(&mut self, name: &str) -> Result<Option<&'u str>, ConfigError> {
        match self.take(name)[..] {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(ConfigError::new(format!(
                "the store's URL gives `{name}` twice; leave one out"
            ))),
        }
    }

    /// Takes out an option. Returns all its values, in order.
    fn take(&mut self, name: &str) -> Vec<&'u str> {
        let mut values = Vec::new();
        self.left.retain(|option| {
            let value = option.split_once('=').filter(|(other, _)| *other == name);
            values.extend(value.map(|(_, value)| value));
            value.is_none()
        });
        values
    }

    /// Takes out the options about replicas.
    pub(super) fn take_replicas(&mut self) -> Result<Option<Replicas>, ConfigError> {
        let (counts, timeouts) = (self.take("replicas"), self.take("replicas_timeout"));
        let counts: Vec<u32> = counts
            .into_iter()
            .map(|value| {
                value.parse().map_err(|_| {
                    ConfigError::new(
                        "`replicas` in the store's URL is not a number; write `replicas=1`, or as \
                         many as must confirm each lock",
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        let timeouts: Vec<Duration> = timeouts
            .into_iter()
            .map(|value| {
                duration(value).ok_or_else(|| {
                    ConfigError::new(
                        "`replicas_timeout` in the store's URL is not a time; write `100ms` or \
                         `1s`",
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        match (&counts[..], &timeouts[..]) {
            ([], []) => Ok(None),
            ([], [_]) => Err(ConfigError::new(
                "the store's URL has `replicas_timeout` without `replicas`; add `replicas=1`, or \
                 as many as must confirm each lock",
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

    /// An error if any option is left: nothing in a URL is ignored.
    pub(super) fn expect_no_more(&self, known: &[&str]) -> Result<(), ConfigError> {
        let mut left = self.left.iter().filter(|option| !option.is_empty());
        let Some(option) = left.next() else {
            return Ok(());
        };
        let name = option.split_once('=').map_or(*option, |(name, _)| name);
        let known: Vec<String> = known
            .iter()
            .chain(&OF_THE_CLIENT)
            .map(|name| format!("`{name}`"))
            .collect();
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let which = if self.has_credentials {
            " (or a `&` in a user or password: write `%26` for it)".to_owned()
        } else if name.chars().all(is_word) && name.len() <= 32 {
            format!(" `{name}`")
        } else {
            String::new()
        };
        let without_value = match option.contains('=') {
            true => "",
            false => ", or one without a value",
        };
        Err(ConfigError::new(format!(
            "the store's URL has an unknown option{which}{without_value}; a URL of this kind has \
             {}",
            known.join(", ")
        )))
    }
}

/// A whole number with its unit, as in the attribute, but with one unit only.
pub(crate) fn duration(text: &str) -> Option<Duration> {
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
mod tests {
    use super::*;

    #[test]
    fn our_options_are_taken_out_and_others_stay() {
        let replicas = |count, ms| {
            let timeout = Duration::from_millis(ms);
            Some(Replicas { count, timeout })
        };
        for (query, db, expected) in [
            ("", None, None),
            ("replicas=2", None, replicas(2, 100)),
            (
                "db=2&replicas=1&replicas_timeout=250ms&",
                Some("2"),
                replicas(1, 250),
            ),
            ("replicas_timeout=1s&replicas=1", None, replicas(1, 1000)),
        ] {
            let mut options = UrlOptions::of(query);
            assert_eq!(options.take_replicas().unwrap(), expected, "{query}");
            assert_eq!(options.take_one("db").unwrap(), db, "{query}");
            assert!(options.expect_no_more(&[]).is_ok(), "{query}");
        }
    }

    #[test]
    fn what_is_left_is_named_with_what_there_is_and_no_password() {
        for (query, says) in [
            (
                "tls=true",
                "unknown option `tls`; a URL of this kind has `db`, `namespace`, `name`, `layout`",
            ),
            ("replica=1", "`replica`"),
            ("tls", "without a value"),
            ("canary canary=1", "unknown option; "),
            ("pass=a&canary=1", "`%26`"),
            ("sentinel_password=a&canary", "`%26`"),
        ] {
            let said = UrlOptions::of(query).expect_no_more(&["db"]);
            let mut said = said.unwrap_err().to_string();
            assert!(said.contains(says), "{query}: {said}");
            said.retain(|c| c != '`');
            assert!(!said.contains("canary"), "{query}: {said}");
        }
        let said = UrlOptions::of("db=1&db=2").take_one("db").unwrap_err();
        assert!(said.to_string().contains("twice"), "{said}");
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
