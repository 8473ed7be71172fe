//! Rates as they are written in the attribute: `"100/s"`, `"5/m"`, `"10/500ms"`.

use crate::parse::duration;

/// The end of each message: how a rate is written.
const FORMS: &str =
    "how many, a slash, and in how long: \"100/s\", \"5/m\", \"1000/h\", \"10/500ms\"";

/// The runtime's limit for a rate.
const MOST_PER_MILLISECOND: u64 = 1_000;
/// The runtime's limit for the time in which an empty bucket fills, in milliseconds.
const LONGEST_WINDOW: u64 = 30 * 24 * 60 * 60 * 1_000;
/// The runtime's most for an exact limit.
const MOST_EXACT: u32 = 10_000;
/// Nanoseconds in a millisecond.
const NANOS: u64 = 1_000_000;

/// `tokens` in `millis` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateText {
    pub(crate) tokens: u32,
    pub(crate) millis: u64,
}

impl RateText {
    /// The rate, or what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |hint: String| format!("`{text}` is not a rate ({hint}): write {FORMS}");
        if text.is_empty() {
            return Err(format!("an empty rate: write {FORMS}"));
        }
        if text.contains(char::is_whitespace) {
            let tight: String = text.split_whitespace().collect();
            let tight = tight.replacen("per", "/", 1);
            return Err(wrong(match Self::parse(&tight) {
                Ok(_) => format!("no spaces: \"{tight}\""),
                Err(_) => "no spaces".to_owned(),
            }));
        }
        let Some((tokens, period)) = text.split_once('/') else {
            let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
            return Err(wrong(match digits.parse::<u32>() {
                Ok(_) => {
                    format!("the time is missing after `{digits}`, for example \"{digits}/s\"")
                }
                Err(_) => "there is no slash".to_owned(),
            }));
        };
        let count = read_count(tokens, period).map_err(&wrong)?;
        let millis = read_period(tokens, period).map_err(&wrong)?;
        if count == 0 {
            return Err(wrong("a rate of zero lets nothing pass, ever".to_owned()));
        }
        if millis == 0 {
            return Err(wrong("no time is not a rate".to_owned()));
        }
        if u64::from(count) > millis.saturating_mul(MOST_PER_MILLISECOND) {
            return Err(format!(
                "`{text}` is more than 1000000 a second: count in larger units, for example KiB \
                 instead of bytes"
            ));
        }
        Ok(Self {
            tokens: count,
            millis,
        })
    }

    /// What keeps it from being an exact limit, if anything does.
    pub(crate) fn refuse_as_limit(self) -> Option<String> {
        let Self { tokens, millis } = self;
        if tokens > MOST_EXACT {
            Some(format!(
                "a limit counts up to {MOST_EXACT} calls exactly: write a shorter time with fewer \
                 calls, or `rate = \"{tokens}/{}\"`, which lets a burst pass beside",
                duration::print(millis)
            ))
        } else if millis > LONGEST_WINDOW {
            Some("a limit's time is at most 30 days: write a shorter one".to_owned())
        } else {
            None
        }
    }

    /// Whether an empty bucket of this size is full again within the longest window.
    pub(crate) fn is_full_in_time(self, burst: u32) -> bool {
        let nanos = self.millis.saturating_mul(NANOS);
        let interval = nanos.div_ceil(u64::from(self.tokens).max(1));
        interval.saturating_mul(u64::from(burst)) <= LONGEST_WINDOW * NANOS
    }
}

fn read_count(tokens: &str, period: &str) -> Result<u32, String> {
    if tokens.is_empty() {
        return Err("a number has to stand before the slash".to_owned());
    }
    if tokens.starts_with('-') {
        return Err("a rate can't be negative".to_owned());
    }
    if tokens.contains('.') {
        return Err("whole numbers only, for example \"3/2s\" instead of \"1.5/s\"".to_owned());
    }
    if !tokens.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits: String = tokens.chars().filter(char::is_ascii_digit).collect();
        return Err(if digits.is_empty() {
            format!("`{tokens}` is not a number")
        } else {
            format!("`{tokens}` is not a number, write \"{digits}/{period}\"")
        });
    }
    tokens
        .parse()
        .map_err(|_| format!("`{tokens}` is more than {}", u32::MAX))
}

fn read_period(tokens: &str, period: &str) -> Result<u64, String> {
    if period.is_empty() {
        return Err(format!(
            "the time is missing after the slash, for example \"{tokens}/s\""
        ));
    }
    if let Ok(millis) = duration::parse(&format!("1{period}")) {
        // A unit alone. `1m30s` would pass as `11m30s`, and is read below.
        if !period.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(millis);
        }
    }
    duration::parse(period).map_err(|_| match duration::unit_meant(period) {
        Some(unit) => format!("`{period}` is not a time, write \"{tokens}/{unit}\""),
        None if matches!(period, "d" | "day" | "days") => {
            format!("`{period}` is not a time, write \"{tokens}/24h\"")
        }
        None => format!("`{period}` is not a time"),
    })
}

#[cfg(test)]
mod tests {
    use super::RateText;
    use proptest::prelude::*;

    #[test]
    fn every_form_of_the_contract() {
        for (text, tokens, millis) in [
            ("100/s", 100, 1_000),
            ("5/m", 5, 60_000),
            ("1000/h", 1_000, 3_600_000),
            ("10/500ms", 10, 500),
            ("1/ms", 1, 1),
            ("3/1m30s", 3, 90_000),
            ("1000000/s", 1_000_000, 1_000),
        ] {
            assert_eq!(
                RateText::parse(text),
                Ok(RateText { tokens, millis }),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("", "an empty rate"),
            (
                "100",
                "the time is missing after `100`, for example \"100/s\"",
            ),
            ("100rps", "the time is missing after `100`"),
            ("fast", "there is no slash"),
            ("100 / s", "no spaces: \"100/s\""),
            ("100 per s", "no spaces: \"100/s\""),
            ("100 per fortnight", "(no spaces)"),
            ("/s", "a number has to stand before the slash"),
            (
                "100/",
                "the time is missing after the slash, for example \"100/s\"",
            ),
            ("100/sec", "write \"100/s\""),
            ("100/min", "write \"100/m\""),
            ("100/day", "write \"100/24h\""),
            ("100/x", "`x` is not a time"),
            ("1.5/s", "whole numbers only, for example \"3/2s\""),
            ("-1/s", "can't be negative"),
            ("1_000/s", "write \"1000/s\""),
            ("many/s", "`many` is not a number"),
            ("0/s", "lets nothing pass"),
            ("1/0s", "no time"),
            ("1000001/s", "more than 1000000 a second"),
            ("99999999999/s", "more than 4294967295"),
        ] {
            let message = RateText::parse(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn a_bucket_has_thirty_days_to_fill() {
        let rate = RateText::parse("1/h").expect("a rate");
        assert!(
            rate.is_full_in_time(720)
                && !rate.is_full_in_time(721)
                && !rate.is_full_in_time(u32::MAX)
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in "\\PC*") {
            let _ = RateText::parse(&text);
        }

        #[test]
        fn anything_like_a_rate_gives_an_answer(text in "[0-9]{0,12}/[0-9]{0,22}[a-z]{0,3}") {
            if let Ok(rate) = RateText::parse(&text) {
                prop_assert!(rate.tokens > 0 && rate.millis > 0);
                let _ = rate.is_full_in_time(u32::MAX);
            }
        }
    }
}
