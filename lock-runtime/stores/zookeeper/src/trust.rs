//! How long the session can be trusted: until when no server can have ended it.
//!
//! A session ends when the *leader* has not heard of it for its timeout. A follower answers reads
//! by itself, also when it is cut off, and tells the leader of its sessions with its answer to the
//! leader's pings, each half tick. A leader that others have replaced, and that does not know it
//! yet, answers reads and a `sync`, and lets sessions be taken over, without asking anybody. So an
//! answer proves little. What proves something:
//!
//! - A write was acknowledged. A majority had it, and followed no later leader then. A later one
//!   lets all sessions last for their whole time again, and never for less.
//! - Something was answered, and the write was sent at least two ticks after that answer, over the
//!   same connection. Between them, the server has told the leader of the session. Of a session
//!   that it takes over, it tells the leader at once.
//!
//! Both together: neither the leader of the write nor a later one can have ended the session
//! before its timeout, counted from the sending of what was answered.
//!
//! Servers may have different limits for timeouts, as while these are changed member by member. The
//! one that takes a session over may grant less than those before, and by that end the session
//! sooner. A new leader goes back to what the session was made with. So the shortest timeout that
//! any server has granted counts, from then on and for what was trusted before.
//!
//! The tick is a setting of the servers. If the URL does not have it, half of the session's timeout
//! stands for two ticks. That is enough from four ticks on; servers allow two, or less with a lower
//! `minSessionTimeout`. Below four, only the URL's tick helps. The leader pings each half tick.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::trusted;
use lock_store::{Instant, Mutex};

/// Something that was answered and proves nothing yet.
#[derive(Clone, Copy, Debug)]
struct AnsweredRequest {
    sent: Instant,
    /// From then on, the leader has heard of the session since it was sent.
    passed_on: Instant,
}

/// The trust in a session, over all its connections.
pub(crate) type SharedTrust = Arc<Mutex<SessionTrust>>;

#[derive(Debug)]
pub(crate) struct SessionTrust {
    /// The shortest that was granted.
    timeout: Duration,
    /// The longest that was granted.
    longest: Duration,
    tick: Option<Duration>,
    answered: VecDeque<AnsweredRequest>,
    until: Instant,
}

/// Requests that were sent within this time are remembered as one.
const AT_ABOUT_THE_SAME_TIME: Duration = Duration::from_millis(10);

impl SessionTrust {
    /// A majority has made the session. It was asked for at `sent`.
    pub(crate) fn begin(sent: Instant, timeout: Duration, tick: Option<Duration>) -> Self {
        Self {
            timeout,
            longest: timeout,
            tick,
            answered: VecDeque::new(),
            until: sent + trusted(timeout),
        }
    }

    /// A server has granted this timeout to the session. It was asked at `sent`. If that is less
    /// than before, the session may end sooner, and is trusted for less. Then this returns the
    /// shortest timeout before.
    pub(crate) fn grant(&mut self, sent: Instant, timeout: Duration) -> Option<Duration> {
        let before = self.timeout;
        self.timeout = before.min(timeout);
        self.longest = self.longest.max(timeout);
        self.until = self.until.min(sent + trusted(self.timeout));
        (timeout < before).then_some(before)
    }

    /// A server has taken the session over to the connection that there is `now`. It was asked to
    /// at `sent`. What was answered over the one before proves nothing here.
    pub(crate) fn take_over(&mut self, sent: Instant, now: Instant) {
        self.answered.clear();
        self.answered.push_back(AnsweredRequest {
            sent,
            passed_on: now,
        });
    }

    /// The shortest timeout that was granted.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The longest timeout that was granted. A new leader may go back to it.
    pub(crate) fn longest_timeout(&self) -> Duration {
        self.longest
    }

    /// In this time, the leader has heard of a request.
    fn passes_on(&self) -> Duration {
        self.tick.map_or(self.timeout / 2, |tick| tick * 2)
    }

    pub(crate) fn answer(&mut self, sent: Instant, now: Instant) {
        // Requests are answered in their order. For all that was sent after this one, the second is
        // as good, and newer.
        while self.answered.get(1).is_some_and(|it| it.passed_on <= sent) {
            self.answered.pop_front();
        }
        let passed_on = now + self.passes_on();
        // Of those that were sent at about the same time, the first counts, when the leader has
        // heard of all.
        if let Some(last) = self.answered.back_mut()
            && sent < last.sent + AT_ABOUT_THE_SAME_TIME
        {
            last.passed_on = passed_on;
            return;
        }
        self.answered.push_back(AnsweredRequest { sent, passed_on });
    }

    /// A write that was sent then was acknowledged.
    pub(crate) fn prove(&mut self, sent: Instant) {
        while let Some(first) = self.answered.front().filter(|it| it.passed_on <= sent) {
            self.until = self.until.max(first.sent + trusted(self.timeout));
            self.answered.pop_front();
        }
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
    fn an_answer_counts_when_a_write_has_followed_two_ticks_later() {
        let start = Instant::now();
        let mut trust = SessionTrust::begin(start, TIMEOUT, Some(TICK));
        let at_first = trust.until();
        assert_eq!(at_first, start + trusted(TIMEOUT));
        let (sent, answered) = (start + SECOND, start + 2 * SECOND);
        trust.answer(sent, answered);
        // Two ticks after it was sent, and not after its answer.
        trust.prove(sent + 2 * TICK);
        assert_eq!(trust.until(), at_first);
        trust.prove(answered + 2 * TICK);
        assert_eq!(trust.until(), sent + trusted(TIMEOUT));
    }

    #[test]
    fn answers_are_remembered_by_the_time_that_they_cover_and_not_by_their_number() {
        let start = Instant::now();
        let mut trust = SessionTrust::begin(start, TIMEOUT, Some(TICK));
        let millisecond = Duration::from_millis(1);
        for number in 0..40_000 {
            let at = start + number * millisecond / 10;
            trust.answer(at, at);
        }
        assert!(trust.answered.len() < 500, "{}", trust.answered.len());
        trust.prove(start + 2 * TICK + 100 * millisecond);
        let until = trust.until() - trusted(TIMEOUT);
        assert!(until > start + 80 * millisecond && until < start + 100 * millisecond);
    }

    #[test]
    fn answers_without_a_write_prove_nothing_and_a_late_write_proves_the_newest_of_them() {
        let start = Instant::now();
        let mut trust = SessionTrust::begin(start, TIMEOUT, Some(TICK));
        for second in 1..=1_000 {
            trust.answer(start + second * SECOND, start + second * SECOND);
        }
        assert_eq!(trust.until(), start + trusted(TIMEOUT));
        assert!(trust.answered.len() < 10, "{}", trust.answered.len());
        trust.prove(start + 1_000 * SECOND);
        assert_eq!(trust.until(), start + 996 * SECOND + trusted(TIMEOUT));
    }

    #[test]
    fn writes_that_are_answered_later_than_others_are_sent_prove_as_much() {
        let start = Instant::now();
        let mut trust = SessionTrust::begin(start, TIMEOUT, Some(TICK));
        for second in 1..=100 {
            let (sent, now) = (start + second * SECOND, start + (second + 3) * SECOND);
            trust.prove(sent);
            trust.answer(sent, now);
        }
        // Three seconds until it was answered, and two ticks.
        assert_eq!(trust.until(), start + 93 * SECOND + trusted(TIMEOUT));
    }

    #[test]
    fn a_session_that_was_taken_over_is_trusted_as_before_until_a_write_is_acknowledged() {
        let start = Instant::now();
        let before = start + 3 * SECOND;
        let (sent, now) = (start + SECOND, start + 2 * SECOND);
        let mut trust = SessionTrust::begin(before - trusted(TIMEOUT), TIMEOUT, Some(TICK));
        assert_eq!(trust.grant(sent, TIMEOUT), None);
        trust.take_over(sent, now);
        trust.answer(now, now);
        assert_eq!(trust.until(), before);
        trust.prove(now);
        assert_eq!(trust.until(), sent + trusted(TIMEOUT));
    }

    #[test]
    fn the_shortest_timeout_that_was_granted_counts_whoever_takes_the_session_over_then() {
        let (start, short) = (Instant::now(), TIMEOUT / 4);
        let mut trust = SessionTrust::begin(start, TIMEOUT, Some(TICK));
        assert_eq!(trust.until(), start + trusted(TIMEOUT));
        // The leader counts the new time from the taking over.
        let (sent, now) = (start + SECOND, start + 2 * SECOND);
        assert_eq!(trust.grant(sent, short), Some(TIMEOUT));
        assert_eq!(trust.until(), sent + trusted(short));
        // For that long, it may be there all the same.
        assert_eq!(trust.longest_timeout(), TIMEOUT);
        trust.take_over(sent, now);
        trust.prove(now);
        assert_eq!(trust.until(), sent + trusted(short));
        // A new leader has the shorter one of the session's beginning, or others in its place.
        let (sent, now) = (start + 3 * SECOND, start + 4 * SECOND);
        assert_eq!(trust.grant(sent, TIMEOUT), None);
        trust.take_over(sent, now);
        trust.prove(now);
        assert_eq!(trust.until(), sent + trusted(short));
        assert_eq!(trust.timeout(), short);
    }

    #[test]
    fn half_of_the_timeout_stands_for_an_unknown_tick() {
        let start = Instant::now();
        let mut trust = SessionTrust::begin(start, TIMEOUT, None);
        for second in 1..=20 {
            let now = start + second * SECOND;
            trust.prove(now);
            trust.answer(now, now);
            let left = trust.until() - now;
            assert!(left > 3 * SECOND && left < TIMEOUT, "{second}: {left:?}");
        }
    }
}
