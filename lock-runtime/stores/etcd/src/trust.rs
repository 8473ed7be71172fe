//! How long a lease can be trusted: until when no server can have ended it.
//!
//! The *leader* ends leases, by its own clock. Any member answers a keep-alive with the leader's
//! word, and a leader that was deposed may answer as well: so an answer proves little. What proves
//! something:
//!
//! - The lease was granted: a majority has written it down.
//! - A keep-alive was answered, and a linearizable request that was sent *after* that answer has
//!   found a key under the lease, in the same term of the leader. So the leader that prolonged the
//!   lease still led then, and the lease was not ended before. It counts from the keep-alive's
//!   sending.
//!
//! A new leader lets all leases last for their whole time again, and never for less.
//!
//! The exception: before etcd 3.5.13 (of 3.4: 3.4.31), a leader that was replaced while it stood
//! still takes itself for the leader for a moment when it comes back. It then asks for the end of
//! the leases that are over by its own list, and the others carry that out although the new leader
//! has prolonged them (etcd's issue 15247). No client can see that beforehand: `health` [tells of
//! it](crate::findings), and the fencing token covers it.

use std::collections::VecDeque;
use std::time::Duration;

use lock_store::Instant;
use lock_store::timing::trusted;

/// A keep-alive that was answered.
#[derive(Clone, Copy, Debug)]
struct AnsweredBeat {
    sent: Instant,
    at: Instant,
    term: u64,
}

#[derive(Debug)]
pub(crate) struct LeaseTrust {
    ttl: Duration,
    /// Those that prove nothing yet.
    answered: VecDeque<AnsweredBeat>,
    until: Instant,
}

/// At most this many keep-alives wait for a proof: the newest count.
const MOST_ANSWERED: usize = 16;

impl LeaseTrust {
    /// The lease was granted. It was asked for at `sent`.
    pub(crate) fn begin(sent: Instant, ttl: Duration) -> Self {
        Self {
            ttl,
            answered: VecDeque::new(),
            until: sent + trusted(ttl),
        }
    }

    /// The lease was there at `sent`, and may end at any time.
    pub(crate) fn unproven(sent: Instant, ttl: Duration) -> Self {
        Self {
            ttl,
            answered: VecDeque::new(),
            until: sent,
        }
    }

    /// A keep-alive was answered, at `at`.
    pub(crate) fn answer(&mut self, sent: Instant, at: Instant, term: u64) {
        if self.answered.len() == MOST_ANSWERED {
            self.answered.pop_front();
        }
        self.answered.push_back(AnsweredBeat { sent, at, term });
    }

    /// A linearizable request that was sent at `sent` has found the lease.
    pub(crate) fn prove(&mut self, sent: Instant, term: u64) {
        while let Some(first) = self.answered.front().copied() {
            if first.at > sent || first.term > term {
                return;
            }
            if first.term == term {
                self.until = self.until.max(first.sent + trusted(self.ttl));
            }
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

    const TTL: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_keep_alive_counts_when_a_later_request_has_found_the_lease() {
        let start = Instant::now();
        let mut trust = LeaseTrust::begin(start, TTL);
        assert_eq!(trust.until(), start + trusted(TTL));
        let (sent, answered) = (start + SECOND, start + 2 * SECOND);
        trust.answer(sent, answered, 7);
        assert_eq!(trust.until(), start + trusted(TTL));
        // It was sent before the keep-alive was answered.
        trust.prove(sent, 7);
        assert_eq!(trust.until(), start + trusted(TTL));
        trust.prove(answered, 7);
        assert_eq!(trust.until(), sent + trusted(TTL));
    }

    #[test]
    fn a_keep_alive_of_an_earlier_term_never_counts() {
        let start = Instant::now();
        let mut trust = LeaseTrust::begin(start, TTL);
        trust.answer(start + SECOND, start + SECOND, 7);
        trust.prove(start + 2 * SECOND, 8);
        trust.prove(start + 3 * SECOND, 7);
        assert_eq!(trust.until(), start + trusted(TTL));
        trust.answer(start + 4 * SECOND, start + 4 * SECOND, 8);
        trust.prove(start + 5 * SECOND, 8);
        assert_eq!(trust.until(), start + 4 * SECOND + trusted(TTL));
    }
}
