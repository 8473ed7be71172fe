//! What happens to a buyer. A process tells it to its parent, one line each.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// From a process: it is connected.
pub(crate) const READY: &str = "ready";
/// To a process: all are connected, sell.
pub(crate) const GO: &str = "go";
/// From a process: the reason why it stopped follows.
pub(crate) const FAILED: &str = "failed ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A buyer is in, with the lock if there is one.
    Entered { waited: Duration, at: Moment },
    /// A buyer is in and stays there until the process is killed.
    Hanging,
    /// A buyer got an item.
    Sold,
    /// A buyer found no item left.
    SoldOut,
    /// A buyer was stopped half way, because the lock was lost.
    Interrupted,
}

/// A point in time that two processes of one machine understand. Only for display: clocks can be
/// set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    since_epoch: Duration,
}

impl Moment {
    pub(crate) fn now() -> Self {
        // All moments before 1970 are the same. A wait is then shown as zero.
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self { since_epoch }
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.since_epoch.saturating_sub(earlier.since_epoch)
    }

    pub(crate) fn as_micros(self) -> u64 {
        micros(self.since_epoch)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entered { waited, at } => {
                write!(f, "entered {} {}", micros(*waited), at.as_micros())
            }
            Self::Hanging => f.write_str("hanging"),
            Self::Sold => f.write_str("sold"),
            Self::SoldOut => f.write_str("sold-out"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// A line that is no event.
#[derive(Debug, thiserror::Error)]
#[error("not a line of the sale: {0:?}")]
pub(crate) struct NoEvent(String);

impl FromStr for Event {
    type Err = NoEvent;

    fn from_str(line: &str) -> Result<Self, NoEvent> {
        let no_event = || NoEvent(line.to_owned());
        let number =
            |word: Option<&str>| word.and_then(|word| word.parse().ok()).ok_or_else(no_event);
        let mut words = line.split(' ');
        match words.next() {
            Some("entered") => Ok(Self::Entered {
                waited: Duration::from_micros(number(words.next())?),
                at: Moment {
                    since_epoch: Duration::from_micros(number(words.next())?),
                },
            }),
            Some("hanging") => Ok(Self::Hanging),
            Some("sold") => Ok(Self::Sold),
            Some("sold-out") => Ok(Self::SoldOut),
            Some("interrupted") => Ok(Self::Interrupted),
            _ => Err(no_event()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_comes_back_from_its_line() {
        let entered = Event::Entered {
            waited: Duration::from_micros(1_234_567),
            at: Moment {
                since_epoch: Duration::from_micros(1_700_000_000_123_456),
            },
        };
        for event in [
            entered,
            Event::Hanging,
            Event::Sold,
            Event::SoldOut,
            Event::Interrupted,
        ] {
            let line = event.to_string();
            assert!(
                line.parse::<Event>().is_ok_and(|back| back == event),
                "{line}"
            );
        }
        assert!("entered soon".parse::<Event>().is_err());
    }
}
