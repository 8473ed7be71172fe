//! [`LayoutOptions`]: what a URL says about a layout.

use std::time::Duration;

use lock_store::{ConfigError, Layout, Namespace};

use super::timestamp::TimeUnit;
use crate::topology::url_options::duration;

/// How far the clocks of machines that follow a time server are apart at most.
const SKEW: Duration = Duration::from_secs(1);
/// No clock is wrong by more on purpose. Each lock lasts longer by twice as much.
const MOST_SKEW: Duration = Duration::from_secs(3600);
/// What ShedLock's providers write before all keys, unless they are told otherwise.
const PREFIX: &str = "job-lock";

/// What a URL says about a layout.
#[derive(Debug)]
pub(crate) struct LayoutOptions {
    pub(super) unit: TimeUnit,
    pub(super) skew: Duration,
    pub(super) prefix: Namespace,
}

impl LayoutOptions {
    pub(crate) fn take(layout: Layout, url: &str) -> Result<(String, Self), ConfigError> {
        let mut options = Self {
            unit: TimeUnit::default(),
            skew: SKEW,
            prefix: Namespace::new(PREFIX)?,
        };
        let (before, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
        let Some((base, query)) = before.split_once('?') else {
            return Ok((url.to_owned(), options));
        };
        let (mut seen, mut others) = (Vec::new(), Vec::new());
        for option in query.split('&') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match (layout, name) {
                // All of it may be meant to be in a password.
                _ if value.contains('@') => others.push(option),
                (Layout::Timestamp, "unit") => options.unit = unit(value)?,
                (Layout::Timestamp, "skew") => options.skew = skew(value)?,
                (Layout::ShedLock, "prefix") => options.prefix = prefix(value)?,
                _ => {
                    others.push(option);
                    continue;
                }
            }
            if seen.contains(&name) {
                return Err(ConfigError::new(format!(
                    "the store's URL gives `{name}` twice; leave one out"
                )));
            }
            seen.push(name);
        }
        let url = match others.is_empty() {
            true => format!("{base}{fragment}"),
            false => format!("{base}?{}{fragment}", others.join("&")),
        };
        Ok((url, options))
    }
}

fn unit(value: &str) -> Result<TimeUnit, ConfigError> {
    match value {
        "ms" => Ok(TimeUnit::Milliseconds),
        "s" => Ok(TimeUnit::Seconds),
        _ => Err(ConfigError::new(
            "`unit` in the store's URL is in what the values of the old locks count: `ms` or `s`",
        )),
    }
}

fn skew(value: &str) -> Result<Duration, ConfigError> {
    let skew = duration(value).filter(|skew| *skew <= MOST_SKEW);
    skew.ok_or_else(|| {
        ConfigError::new(
            "`skew` in the store's URL is how far the clocks of its clients may be apart, at most \
             an hour: `500ms`, `2s`",
        )
    })
}

fn prefix(value: &str) -> Result<Namespace, ConfigError> {
    let named = Namespace::new(value).ok();
    named.filter(|prefix| !prefix.as_str().is_empty()).ok_or_else(|| {
        ConfigError::new(
            "`prefix` in the store's URL is the `keyPrefix` of ShedLock's provider; it can have \
             letters, digits, `-`, `_` and `.`, and not be empty",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layouts_options_are_taken_out_and_those_of_another_stay() {
        let take = |layout, url| LayoutOptions::take(layout, url).unwrap();
        let (url, options) = take(Layout::Timestamp, "redis://h?unit=s&db=1&skew=250ms");
        assert_eq!(url, "redis://h?db=1");
        assert_eq!(options.unit, TimeUnit::Seconds);
        assert_eq!(options.skew, Duration::from_millis(250));
        let (url, options) = take(Layout::ShedLock, "redis://h?prefix=jobs");
        assert_eq!((&*url, options.prefix.as_str()), ("redis://h", "jobs"));
        let (url, _) = take(Layout::ShedLock, "redis://h?unit=s");
        assert_eq!(url, "redis://h?unit=s");
        for (url, rest) in [
            ("rediss://h?skew=1s#insecure", "rediss://h#insecure"),
            (
                "rediss://h?skew=1s&db=1#insecure",
                "rediss://h?db=1#insecure",
            ),
            ("rediss://h#insecure?skew=1s", "rediss://h#insecure?skew=1s"),
            ("redis://u:p#x?skew=1s@h", "redis://u:p#x?skew=1s@h"),
        ] {
            assert_eq!(take(Layout::Timestamp, url).0, rest);
        }
        for (url, says) in [
            ("redis://h?unit=us", "`ms` or `s`"),
            ("redis://h?unit=", "`ms` or `s`"),
            ("redis://h?skew=1", "`skew`"),
            ("redis://h?skew=2h", "at most an hour"),
            ("redis://h?unit=s&unit=ms", "twice"),
        ] {
            let said = LayoutOptions::take(Layout::Timestamp, url).unwrap_err();
            assert!(said.to_string().contains(says), "{url}: {said}");
        }
        let said = LayoutOptions::take(Layout::ShedLock, "redis://h?prefix=a:b").unwrap_err();
        assert!(said.to_string().contains("`keyPrefix`"), "{said}");
    }
}
