//! How long the session can be trusted: until when no server can have ended it.
//!
//! A session ends when the *leader* has not heard of it for its timeout. A follower answers reads
//! by itself, also when it is cut off, and tells the leader of its sessions with its answer to the
//! leader's pings, each half tick. So an answer proves little. What proves something:
//!
//! - The session was made, or taken over by another server: the leader counts from then on.
//! - A request was answered, and a `sync` that was sent at least two ticks after that answer was
//!   answered as well, over the same connection. Between them, the server has told the leader of
//!   the session. So the leader counts from the first request's sending at the earliest.
//!
//! The tick is a setting of the servers. If the URL does not have it, half of the session's timeout
//! stands for two ticks, which it is at least, unless the servers' `minSessionTimeout` was lowered:
//! by default they allow no timeout below two ticks. The leader pings each half tick.
//!
//! A leader that was replaced and does not know it yet answers a `sync`, and lets a session be
//! taken over, without asking its followers. What a quorum has acknowledged, a write, would rule
//! that out. This does not ask for one: the page on ZooKeeper names the case.

use std::collections::VecDeque;
use std::time::Duration;

use lock_store::Instant;
use lock_store::timing::trusted;

/// The trust in one session.
#[derive(Debug)]
pub(crate) struct SessionTrust {
    timeout: Duration,
    /// In this time, the leader has heard of a request.
    passed_on: Duration,
    /// When requests were sent and answered that prove nothing yet.
    answered: VecDeque<(Instant, Instant)>,
    until: Instant,
}

impl SessionTrust {
    /// The server has made or taken over the session. It was asked at `sent`.
    pub(crate) fn begin(sent: Instant, timeout: Duration, tick: Option<Duration>) -> Self {
        Self {
            timeout,
            passed_on: tick.map_or(timeout / 2, |tick| tick * 2),
            answered: VecDeque::new(),
            until: sent + trusted(timeout),
        }
    }

    /// A `sync` was answered.
    pub(crate) fn prove(&mut self, sent: Instant, now: Instant) {
        while let Some((first, answered)) = self.answered.front().copied() {
            if answered + self.passed_on > sent {
                break;
            }
            self.until = self.until.max(first + trusted(self.timeout));
            self.answered.pop_front();
        }
        self.answered.push_back((sent, now));
    }

    pub(crate) fn until(&self) -> Instant {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);
    const TICK: Duration = Duration::from_secs(2);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_answer_counts_when_another_has_followed_two_ticks_later() {
        let start = Instant::now();
        let mut trust = SessionTrust::begin(start, TIMEOUT, Some(TICK));
        let at_first = trust.until();
        assert_eq!(at_first, start + trusted(TIMEOUT));
        let (sent, answered) = (start + SECOND, start + 2 * SECOND);
        trust.prove(sent, answered);
        assert_eq!(trust.until(), at_first);
        // Two ticks after it was sent, and not after its answer.
        trust.prove(sent + 2 * TICK, sent + 2 * TICK);
        assert_eq!(trust.until(), at_first);
        trust.prove(answered + 2 * TICK, answered + 2 * TICK);
        assert_eq!(trust.until(), sent + trusted(TIMEOUT));
    }

    #[test]
    fn half_of_the_timeout_stands_for_an_unknown_tick() {
        let start = Instant::now();
        let mut trust = SessionTrust::begin(start, TIMEOUT, None);
        for second in 1..=20 {
            let now = start + second * SECOND;
            trust.prove(now, now);
            let left = trust.until() - now;
            assert!(left > 3 * SECOND && left < TIMEOUT, "{second}: {left:?}");
        }
    }
}
