//! [`Tally`]: what came of one measurement.

use std::fmt;

/// How many cycles of asking, holding and giving back, and of the tasks with the fewest and most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) cycles: u64,
    pub(crate) fewest: u64,
    pub(crate) most: u64,
    pub(crate) seconds: f64,
}

impl Tally {
    pub(crate) fn of(counts: &[u64], seconds: f64) -> Self {
        Self {
            cycles: counts.iter().sum(),
            fewest: counts.iter().copied().min().unwrap_or(0),
            most: counts.iter().copied().max().unwrap_or(0),
            seconds,
        }
    }

    /// All of it by several processes at the same time.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            cycles: self.cycles + other.cycles,
            fewest: self.fewest.min(other.fewest),
            most: self.most.max(other.most),
            seconds: self.seconds.max(other.seconds),
        }
    }

    /// Cycles a second.
    #[expect(clippy::cast_precision_loss, reason = "a count of a few seconds")]
    pub(crate) fn rate(&self) -> f64 {
        self.cycles as f64 / self.seconds
    }

    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut number = || words.next()?.parse().ok();
        let (cycles, fewest, most) = (number()?, number()?, number()?);
        Some(Self {
            cycles,
            fewest,
            most,
            seconds: words.next()?.parse().ok()?,
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cycles,
            fewest,
            most,
            seconds,
        } = self;
        write!(f, "{cycles} {fewest} {most} {seconds:.3}")
    }
}
