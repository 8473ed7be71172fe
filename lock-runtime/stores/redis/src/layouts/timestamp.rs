//! [`Timestamp`]: locks as the oldest recipe for Redis keeps them, whose value is the time of their
//! end (`SETNX`, and `GETSET` to take over).
//!
//! The value names no owner. So this client remembers what it wrote, and takes a value that is
//! equal for its own. One that it can't know, since the reply did not come, is left to its end:
//! another's value may be equal.

use std::time::Duration;

use lock_store::timing::MAX_LEASE;
use lock_store::{Claim, Clock, FoundHolder, Instant, LockKey, Mutex, Owner, SweepingMap};

use super::shedlock::iso_time;
use super::text_store::{TextLayout, is_number};
use crate::names::{Prefix, Shown};
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

/// A lock of one owner.
type OwnKey = (Owner, String);

/// Locks in the layout of the recipe.
#[derive(Debug)]
pub(crate) struct Timestamp {
    pub(super) unit: TimeUnit,
    /// How far the clocks of the recipe's clients may be from the server's.
    pub(super) skew: Duration,
    pub(super) namespace: Prefix,
    pub(super) clock: Clock,
    /// The values that this client wrote last, and when.
    pub(super) written: Mutex<SweepingMap<OwnKey, (String, Instant)>>,
}

impl Timestamp {
    fn own_key(&self, claim: &Claim) -> OwnKey {
        (claim.owner, self.name(&claim.key))
    }
}

impl TextLayout for Timestamp {
    const LIBRARY: &'static str = "the layout `timestamp`";

    fn script(&self) -> &'static Text {
        &scripts::TIMESTAMP
    }

    fn name(&self, key: &LockKey) -> String {
        Shown(self.namespace.lock(key)).to_string()
    }

    fn put_settings(&self, command: &mut Command) {
        command
            .arg(millis(self.unit.length()))
            .arg(millis(self.skew));
    }

    fn own(&self, claim: &Claim) -> Option<String> {
        let written = self.written.lock();
        let (value, _) = written.get(&self.own_key(claim))?;
        Some(value.clone())
    }

    fn wrote(&self, claim: &Claim, text: &str) {
        let now = self.clock.now();
        let mut written = self.written.lock();
        written.sweep(|(_, at)| now < *at + 2 * MAX_LEASE);
        written.insert(self.own_key(claim), (text.to_owned(), now));
    }

    fn forget(&self, claim: &Claim) {
        self.written.lock().remove(&self.own_key(claim));
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

    fn holder(&self, text: &str) -> FoundHolder {
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
