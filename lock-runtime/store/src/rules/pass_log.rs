//! The log of an exact limit.

use std::collections::VecDeque;
use std::time::Duration;

use crate::{RateRequest, Rated, micros};

/// Up to this limit, the log has a line for each pass.
const ALL_LISTED: u32 = 100;
/// Above it, passes within this part of the window share a line.
const LINES: u32 = 100;

/// What has passed lately under an exact limit, as it was when something last passed. Nothing is
/// the default.
///
/// It is a *sliding window log*: a request passes when, of the tokens that passed within the window
/// before it, and its own, there are no more than the limit. A window begins with its first
/// microsecond and ends before its last. Under a large limit some lines stand for several passes,
/// as if all had passed when the last of them did: no window has more than the limit, and a request
/// may be refused for a hundredth of the window longer than it had to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassLog {
    /// In the order of passing.
    lines: VecDeque<PassLine>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PassLine {
    /// Microseconds after that time. Above zero if a request waits for its turn.
    at: i64,
    tokens: u32,
}

impl PassLog {
    /// The reply to a request that comes `elapsed` after the last change, and the new state, if it
    /// changes.
    ///
    /// `None` means that the clock was set back, behind that time. The log counts from now on
    /// instead, whether or not tokens are taken: nobody is refused for longer than the window, or
    /// than the turns that were taken in advance.
    #[must_use]
    pub fn take(
        &self,
        elapsed: Option<Duration>,
        window: Duration,
        request: &RateRequest,
    ) -> (Rated, Option<Self>) {
        let set_back = elapsed.is_none();
        let (elapsed, width) = (micros(elapsed.unwrap_or_default()), micros(window));
        let limit = u64::from(request.burst);
        let aged = self.lines.iter().map(|line| PassLine {
            at: line.at.saturating_sub(elapsed),
            ..*line
        });
        let mut log = Self {
            lines: aged.filter(|line| line.at > -width).collect(),
        };
        let newest = log.lines.back().map_or(0, |line| line.at);
        let mut taken = u64::from(request.tokens);
        let mut turn = newest.max(0);
        for line in log.lines.iter().rev() {
            taken += u64::from(line.tokens);
            if taken > limit {
                turn = turn.max(line.at + width);
                break;
            }
        }
        let delay = Duration::from_micros(turn.unsigned_abs());
        if delay > request.wait {
            let limited = Rated::Limited { retry_after: delay };
            return (limited, set_back.then_some(log));
        }
        let left = match turn {
            0 => limit.saturating_sub(taken),
            _ => 0,
        };
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let passed = Rated::Passed { delay, left };
        if request.tokens == 0 {
            return (passed, None);
        }
        log.add(turn, request, window);
        (passed, Some(log))
    }

    /// Passes within this time share a line.
    #[must_use]
    pub fn share(limit: u32, window: Duration) -> Duration {
        match limit {
            0..=ALL_LISTED => Duration::ZERO,
            _ => window / LINES,
        }
    }

    fn add(&mut self, at: i64, request: &RateRequest, window: Duration) {
        let share = micros(Self::share(request.burst, window));
        let count = self.lines.len();
        let before = count.checked_sub(2).map(|index| self.lines[index].at);
        match self.lines.back_mut() {
            Some(last) if last.at == at || before.is_some_and(|before| at - before <= share) => {
                last.at = at;
                last.tokens = last.tokens.saturating_add(request.tokens);
            }
            _ => self.lines.push_back(PassLine {
                at,
                tokens: request.tokens,
            }),
        }
    }

    /// How long after that time the last of it has passed.
    #[must_use]
    pub fn last(&self) -> Duration {
        let last = self.lines.back().map_or(0, |line| line.at.max(0));
        Duration::from_micros(last.unsigned_abs())
    }

    /// As pairs of a time, in microseconds after that time, and a number of tokens.
    pub fn lines(&self) -> impl Iterator<Item = (i64, u32)> {
        self.lines.iter().map(|line| (line.at, line.tokens))
    }

    /// The log with such lines.
    pub fn of_lines(lines: impl IntoIterator<Item = (i64, u32)>) -> Self {
        let lines = lines
            .into_iter()
            .map(|(at, tokens)| PassLine { at, tokens });
        Self {
            lines: lines.collect(),
        }
    }
}
