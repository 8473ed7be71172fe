//! Durations as they are written in the attribute: `"500ms"`, `"10s"`, `"1m30s"`.

/// The end of each message: how a duration is written.
const FORMS: &str = "\
    a whole number and a unit (`ms`, `s`, `m` or `h`), one or more, no spaces: \"500ms\", \
    \"10s\", \"1m30s\"";

/// The duration in milliseconds, or what is wrong with the text.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err(format!("an empty duration: write {FORMS}"));
    }
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, |c| !c.is_ascii_digit());
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => 0,
        };
        if number.is_empty() || millis == 0 {
            return Err(explain(text, number, unit));
        }
        let step = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(millis))
            .and_then(|n| total.checked_add(n));
        let Some(sum) = step else {
            return Err(format!(
                "`{text}` is too long a duration: write a shorter one, for example \"24h\""
            ));
        };
        total = sum;
        rest = after;
    }
    Ok(total)
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn explain(text: &str, number: &str, unit: &str) -> String {
    let word = unit.trim();
    let hint = if number.is_empty() && word == "-" {
        "a duration can't be negative".to_owned()
    } else if unit == "." {
        "whole numbers only, for example \"1s500ms\" instead of \"1.5s\"".to_owned()
    } else if !number.is_empty() && word.is_empty() {
        format!("the unit is missing after `{number}`, for example \"{number}s\"")
    } else if text.contains(char::is_whitespace) {
        let tight: String = text.split_whitespace().collect();
        match parse(&tight) {
            Ok(_) => format!("no spaces: \"{tight}\""),
            Err(_) => "no spaces".to_owned(),
        }
    } else if number.is_empty() {
        format!("a number has to stand before `{word}`")
    } else {
        match unit_meant(word) {
            Some(meant) => format!("`{word}` is not a unit, write \"{number}{meant}\""),
            None => format!("`{word}` is not a unit"),
        }
    };
    format!("`{text}` is not a duration ({hint}): write {FORMS}")
}

pub(crate) fn unit_meant(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => Some("ms"),
        "s" | "sec" | "secs" | "second" | "seconds" => Some("s"),
        "m" | "min" | "mins" | "minute" | "minutes" => Some("m"),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some("h"),
        _ => None,
    }
}

/// The shortest usual way to write a number of milliseconds.
pub(crate) fn print(millis: u64) -> String {
    let mut rest = millis;
    let mut text = String::new();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest >= size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{parse, print};
    use proptest::prelude::*;

    #[test]
    fn every_form_of_the_contract() {
        let table = [
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("1m30s", 90_000),
            ("0s", 0),
            ("1h1m1s1ms", 3_661_001),
        ];
        for (text, millis) in table {
            assert_eq!(parse(text), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let table = [
            ("", "an empty duration"),
            ("10", "the unit is missing after `10`, for example \"10s\""),
            ("1m30", "the unit is missing after `30`"),
            ("s", "a number has to stand before `s`"),
            ("1.5s", "whole numbers only"),
            ("-1s", "can't be negative"),
            ("10 s", "no spaces: \"10s\""),
            (" 10s", "no spaces: \"10s\""),
            ("10sec", "write \"10s\""),
            ("10S", "write \"10s\""),
            ("3d", "`d` is not a unit"),
            ("99999999999999999999s", "too long"),
            ("18446744073709551615h", "too long"),
        ];
        for (text, part) in table {
            let message = parse(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn printed_and_parsed_is_the_same(millis in 0..u64::MAX) {
            prop_assert_eq!(parse(&print(millis)), Ok(millis));
        }
    }
}
