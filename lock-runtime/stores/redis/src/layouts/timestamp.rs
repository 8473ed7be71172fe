//! [`Timestamp`]: locks as the oldest recipe for Redis keeps them, whose value is the time of their
//! end (`SETNX`, and `GETSET` to take over).
//!
//! The value names no owner, and its server chooses it. So a second key says whose value it is.
//! Without it, only a reply would tell, and then whoever has not heard it could neither renew nor
//! release its own lock. Clients of the recipe do not know that key: it counts only as long as it
//! has the very value of the lock.

use std::time::Duration;

use lock_store::{FoundHolder, LockKey, Owner};

use super::shedlock::iso_time;
use super::text_store::{TextLayout, is_number};
use crate::names::{AsText, Prefix};
use crate::resp::Command;
use crate::scripts::{self, Text};
use crate::wire::millis;

/// What the recipe can't promise.
pub(super) const WEAKNESSES: &str = "the layout `timestamp` keeps locks as an old recipe does, \
    which is safe only while the clocks of all its clients agree within `skew`; a client of the \
    recipe that comes too late overwrites the winner's time by its GETSET, and a lock names no \
    owner; use it only beside services that still run the recipe";

/// In what the values are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    #[default]
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    fn length(self) -> Duration {
        match self {
            Self::Milliseconds => Duration::from_millis(1),
            Self::Seconds => Duration::from_secs(1),
        }
    }
}

/// Locks in the layout of the recipe.
#[derive(Debug)]
pub(crate) struct Timestamp {
    pub(super) unit: TimeUnit,
    /// How far the clocks of the recipe's clients may be from the server's.
    pub(super) skew: Duration,
    pub(super) namespace: Prefix,
}

impl TextLayout for Timestamp {
    const LIBRARY: &'static str = "the layout `timestamp`";

    fn script(&self) -> &'static Text {
        &scripts::TIMESTAMP
    }

    fn name(&self, key: &LockKey) -> String {
        AsText(self.namespace.lock(key)).to_string()
    }

    fn put_settings(&self, command: &mut Command) {
        command
            .arg(millis(self.unit.length()))
            .arg(millis(self.skew));
    }

    fn put_keys(&self, key: &LockKey, command: &mut Command) {
        let (lock, owner) = (
            self.namespace.lock(key),
            self.namespace.timestamp_owner_key(key),
        );
        command.arg(2).add_text(lock).add_text(owner);
    }

    fn own(&self, owner: Owner) -> String {
        owner.to_string()
    }

    fn conflict(&self, word: &str) -> Option<&'static str> {
        match word {
            "unit s" => Some("a time in seconds (write `unit=s` in the URL)"),
            // Those of other layouts do not begin with a digit.
            word if word.strip_prefix("text ").is_some_and(is_number) => {
                Some("a number that is no time of these years")
            }
            "unit ms" => Some("a time in milliseconds (write `unit=ms` in the URL)"),
            _ => None,
        }
    }

    /// A value, and the owner if it is one of this library.
    fn holder(&self, text: &str) -> FoundHolder {
        let (text, owner) = text.split_once(' ').unwrap_or((text, ""));
        let found = FoundHolder::parse(owner.as_bytes());
        if let FoundHolder::Owner { .. } = found {
            return found;
        }
        let until = text.parse().ok().map(|count: f64| {
            let end = Duration::try_from_secs_f64(count * self.unit.length().as_secs_f64());
            iso_time(end.unwrap_or_default())
        });
        let until = until.as_deref().unwrap_or(text);
        FoundHolder::Foreign(format!(
            "somebody whom its lock does not name, until {until}"
        ))
    }

    /// It is written with the skew, and others may count in whole units.
    fn rounds_up(&self) -> Duration {
        2 * (self.skew + self.unit.length())
    }
}
