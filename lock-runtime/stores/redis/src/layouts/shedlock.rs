//! [`ShedLock`]: locks as ShedLock's providers for Redis keep them: the key
//! `job-lock:<environment>:<name>`, and a text that says since when and where.

use std::time::Duration;

use lock_store::{Acquire, FoundHolder, LockKey, Namespace, Owner, escaped, wall_micros};

use super::text_store::TextLayout;
use crate::names::Prefix;
use crate::resp::Command;
use crate::scripts::{self, Text};

/// The environment of a provider that was given none.
const ENVIRONMENT: &str = "default";

/// The client's channels: those of its environment, which a view of another client may be in, and
/// below the prefix, which users are allowed.
pub(super) fn channels(prefix: &Namespace, environment: &Namespace) -> Prefix {
    let default = Namespace::new(ENVIRONMENT).unwrap_or_default();
    match environment.as_str() {
        "" => Prefix::below(prefix, &default),
        _ => Prefix::below(prefix, environment),
    }
}

/// Locks in the layout of ShedLock.
#[derive(Debug)]
pub(crate) struct ShedLock {
    /// What a provider calls `keyPrefix`.
    pub(super) prefix: Namespace,
    /// The client's own namespace.
    pub(super) environment: Namespace,
    /// Who this client says that it is, where ShedLock writes its host.
    pub(super) host: String,
}

impl TextLayout for ShedLock {
    const LIBRARY: &'static str = "the layout `shedlock`";

    fn script(&self) -> &'static Text {
        &scripts::SHEDLOCK
    }

    fn name(&self, key: &LockKey) -> String {
        let environment = key.namespace().unwrap_or(&self.environment).as_str();
        let environment = match environment {
            "" => ENVIRONMENT,
            named => named,
        };
        format!("{}:{environment}:{}", self.prefix.as_str(), key.as_str())
    }

    fn own(&self, owner: Owner) -> String {
        format!(":{owner}")
    }

    fn put_new_text(&self, request: &Acquire, command: &mut Command) {
        let time = iso_time(Duration::from_micros(wall_micros()));
        let (host, owner) = (&self.host, request.claim.owner);
        command.arg(format!("ADDED:{time}@{host}:{owner}"));
    }

    fn holder(&self, text: &str) -> FoundHolder {
        FoundHolder::of_shedlock(text).unwrap_or_else(|| FoundHolder::Foreign(foreign_name(text)))
    }

    fn rounds_up(&self) -> Duration {
        Duration::ZERO
    }
}

/// A holder in Java, for people.
fn foreign_name(text: &str) -> String {
    let parts = text
        .strip_prefix("ADDED:")
        .and_then(|rest| rest.split_once('@'))
        .and_then(|(since, rest)| Some((since, rest.rsplit_once(':')?.0)));
    match parts {
        Some((since, host)) => {
            let (since, host) = (escaped(since), escaped(host));
            format!("ShedLock on {host} since {since}")
        }
        None => escaped(text),
    }
}

/// As Java writes an instant with milliseconds, such as `2026-11-26T10:59:28.510Z`.
pub(super) fn iso_time(since_1970: Duration) -> String {
    let (days, second) = (since_1970.as_secs() / 86_400, since_1970.as_secs() % 86_400);
    // Years that begin with March have their leap day at the end, in cycles of 400 years.
    let day = days + 719_468;
    let (cycle, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * cycle + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use lock_store::ClientId;

    use super::*;

    #[test]
    fn times_are_written_as_java_writes_them() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_001, "2000-03-01T00:00:00.001Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (1_795_690_768_510, "2026-11-26T10:59:28.510Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_time(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_text_tells_its_holder() {
        let none = Namespace::new("").unwrap_or_else(|error| unreachable!("{error}"));
        let layout = ShedLock {
            prefix: none.clone(),
            environment: none,
            host: String::new(),
        };
        let owner = Owner::new(ClientId(7), 42);
        for (end, kept) in [("", false), (":kept", true)] {
            let text = format!("ADDED:2026-11-26T10:59:28.510Z@h:1:{owner}{end}");
            let found = FoundHolder::Owner {
                owner,
                kept,
                permits: None,
            };
            assert_eq!(layout.holder(&text), found);
        }
        let text = "ADDED:2026-11-26T10:59:28.510Z@vm:82f06e8d-9d2b-476f-a2e3-413fbfc39f2f";
        let said = "ShedLock on vm since 2026-11-26T10:59:28.510Z";
        assert_eq!(layout.holder(text), FoundHolder::Foreign(said.to_owned()));
        // Whoever may write the key chooses what people read.
        for (text, said) in [
            (
                "ADDED:1\n2@vm\r\nWARN \u{1b}[31m:x",
                "ShedLock on vm\\r\\nWARN \\u{1b}[31m since 1\\n2",
            ),
            ("ADDED:no\nhost", "ADDED:no\\nhost"),
        ] {
            assert_eq!(layout.holder(text), FoundHolder::Foreign(said.to_owned()));
        }
    }
}
