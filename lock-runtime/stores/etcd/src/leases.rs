//! The client's leases: a short one for its session and its places, and one for the holds of each
//! length.
//!
//! Holds of one length share a lease, so that a free key costs one round trip. It is longer than
//! theirs by [`SLACK`], and is kept alive as long as one of them needs it: so the hold of a process
//! that has died ends after its lease, and not before. The client itself ends those of its holds
//! whose time is over while others are not.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use lock_store::timing::drift_margin;
use lock_store::{Instant, Mutex, Owner};

use crate::grpc::Status;
use crate::trust::LeaseTrust;

/// How much longer a lease is than the holds on it, at least: more than the time between two
/// keep-alives, and the one percent that is not trusted.
const SLACK: Duration = Duration::from_secs(4);
/// A lease that nobody needs any more stays alive for this long.
const UNNEEDED_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Lease {
    /// What was asked for. Members may grant more: they have a least time.
    asked_for: Duration,
    ttl: Duration,
    trust: LeaseTrust,
    /// `None`: always.
    needed_until: Option<Instant>,
    /// When keep-alives were sent that were not answered yet.
    asked: Vec<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LeaseUse {
    Session,
    /// Holds, for which it lasts this number of seconds.
    Holds(u64),
    /// What stays taken after the release of this owner. Asked for again, it has another number.
    Kept(Owner),
}

/// A lease that is asked for. The client gives it its number: if the answer is lost, it asks for
/// the same one again, so that no other is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskedLease {
    pub(crate) id: i64,
    /// When it is asked for now.
    pub(crate) sent: Instant,
    /// When it was asked for first. It lasts from then on if it is there already.
    pub(crate) first_sent: Instant,
    /// An earlier request for it had no answer.
    pub(crate) is_repeated: bool,
}

/// The client's leases, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct ClientLeases {
    granted: Mutex<HashMap<i64, Lease>>,
    /// Those of which nobody knows whether they were granted.
    asked: Mutex<HashMap<LeaseUse, (i64, Instant)>>,
}

/// A number that no other lease has: 63 random bits.
fn random_id() -> i64 {
    let random = RandomState::new().hash_one("lease");
    i64::try_from(random >> 1).unwrap_or(1).max(1)
}

/// How long a lease for holds of this length is, in seconds.
pub(crate) fn seconds_for(lease: Duration) -> u64 {
    round_up_to_seconds(lease + SLACK + drift_margin(lease))
}

/// etcd counts whole seconds.
pub(crate) fn round_up_to_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl ClientLeases {
    pub(crate) fn ask_for(&self, used: LeaseUse, now: Instant) -> AskedLease {
        let mut asked = self.asked.lock();
        let is_repeated = asked.contains_key(&used);
        let (id, first_sent) = *asked.entry(used).or_insert_with(|| (random_id(), now));
        AskedLease {
            id,
            sent: now,
            first_sent,
            is_repeated,
        }
    }

    /// It is known what has become of it.
    pub(crate) fn note_answer(&self, used: LeaseUse) {
        self.asked.lock().remove(&used);
    }

    /// It was refused. Of one that may be there all the same, nothing is known.
    pub(crate) fn note_refusal(&self, used: LeaseUse, status: &Status) {
        if !status.may_be_carried_out() {
            self.note_answer(used);
        }
    }

    /// A lease that was asked for, for so long, and was granted: at `sent`, for perhaps longer.
    pub(crate) fn add(
        &self,
        id: i64,
        asked_for: Duration,
        (sent, ttl): (Instant, Duration),
        needed_until: Option<Instant>,
    ) {
        let lease = Lease {
            asked_for,
            ttl,
            trust: LeaseTrust::begin(sent, ttl),
            needed_until,
            asked: Vec::new(),
        };
        self.granted.lock().insert(id, lease);
    }

    /// The session's lease was found, at `sent`. Some member may have said that it is over, and it
    /// is to be kept alive again.
    pub(crate) fn keep(&self, id: i64, sent: Instant, ttl: Duration) {
        self.granted.lock().entry(id).or_insert_with(|| Lease {
            asked_for: ttl,
            ttl,
            trust: LeaseTrust::unproven(sent, ttl),
            needed_until: None,
            asked: Vec::new(),
        });
    }

    /// The shortest lease that is long enough for holds of this length, and not longer than it must
    /// be.
    pub(crate) fn find(&self, lease: Duration, now: Instant) -> Option<i64> {
        let needs = Duration::from_secs(seconds_for(lease));
        let all = self.granted.lock();
        let fits = all.iter().filter(|(_, found)| {
            let is_short = found.asked_for < needs + SLACK;
            found.ttl >= needs && is_short && found.trust.until() > now
        });
        fits.min_by_key(|(_, found)| found.ttl).map(|(id, _)| *id)
    }

    /// Whether it is long enough for holds of this length.
    pub(crate) fn fits(&self, id: i64, lease: Duration) -> bool {
        let needs = Duration::from_secs(seconds_for(lease));
        let all = self.granted.lock();
        all.get(&id).is_some_and(|found| found.ttl >= needs)
    }

    /// A hold on this lease ends then.
    pub(crate) fn need(&self, id: i64, until: Instant) {
        if let Some(lease) = self.granted.lock().get_mut(&id)
            && let Some(needed) = &mut lease.needed_until
        {
            *needed = until.max(*needed);
        }
    }

    pub(crate) fn remove(&self, id: i64) {
        self.granted.lock().remove(&id);
    }

    /// All of them, with those that may have been granted, for the end.
    pub(crate) fn all(&self) -> Vec<i64> {
        let asked = self.asked.lock();
        let asked = asked.values().map(|(id, _)| *id);
        asked.chain(self.granted.lock().keys().copied()).collect()
    }

    /// Those that are to be kept alive now. Notes that they were asked.
    pub(crate) fn ask(&self, now: Instant) -> Vec<i64> {
        let mut all = self.granted.lock();
        all.retain(|_, lease| {
            lease
                .needed_until
                .is_none_or(|needed| now < needed + UNNEEDED_FOR)
        });
        for lease in all.values_mut() {
            lease.asked.push(now);
        }
        all.keys().copied().collect()
    }

    /// A keep-alive was answered. They are answered in their order.
    pub(crate) fn answer(&self, id: i64, now: Instant, term: u64) {
        if let Some(lease) = self.granted.lock().get_mut(&id)
            && !lease.asked.is_empty()
        {
            let sent = lease.asked.remove(0);
            lease.trust.answer(sent, now, term);
        }
    }

    /// The first keep-alive that was not answered.
    pub(crate) fn first_asked(&self) -> Option<Instant> {
        let all = self.granted.lock();
        let first = all.values().filter_map(|lease| lease.asked.first());
        first.min().copied()
    }

    /// The connection is gone, and what was asked over it.
    pub(crate) fn forget_asked(&self) {
        for lease in self.granted.lock().values_mut() {
            lease.asked.clear();
        }
    }

    /// A linearizable request that was sent then has found this lease.
    pub(crate) fn prove(&self, id: i64, sent: Instant, term: u64) {
        if let Some(lease) = self.granted.lock().get_mut(&id) {
            lease.trust.prove(sent, term);
        }
    }

    /// Until when no server can have ended it.
    pub(crate) fn trusted_until(&self, id: i64) -> Option<Instant> {
        let all = self.granted.lock();
        all.get(&id).map(|lease| lease.trust.until())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::code;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_lease_outlasts_its_holds_also_when_its_last_keep_alive_was_a_while_ago() {
        for lease in [
            10 * SECOND / 1_000,
            SECOND,
            30 * SECOND,
            24 * 3_600 * SECOND,
        ] {
            let ttl = Duration::from_secs(seconds_for(lease));
            assert!(
                lock_store::timing::trusted(ttl) > lease + 3 * SECOND,
                "{lease:?}"
            );
        }
    }

    #[test]
    fn a_lease_that_is_found_again_is_kept_alive_and_not_trusted_before_that() {
        let (leases, now) = (ClientLeases::default(), Instant::now());
        leases.keep(1, now, 5 * SECOND);
        assert_eq!(leases.find(SECOND / 2, now), None);
        assert_eq!(leases.ask(now), [1]);
        leases.answer(1, now + SECOND, 7);
        leases.prove(1, now + 2 * SECOND, 7);
        assert_eq!(leases.find(SECOND / 2, now + 2 * SECOND), Some(1));
    }

    #[test]
    fn a_lease_whose_grant_had_no_answer_is_asked_for_by_the_same_number() {
        let (leases, now) = (ClientLeases::default(), Instant::now());
        let first = leases.ask_for(LeaseUse::Holds(34), now);
        assert!(first.id > 0 && !first.is_repeated);
        let second = leases.ask_for(LeaseUse::Holds(34), now + SECOND);
        let again = AskedLease {
            sent: now + SECOND,
            is_repeated: true,
            ..first
        };
        assert_eq!(second, again);
        assert_ne!(leases.ask_for(LeaseUse::Session, now).id, first.id);
        assert_eq!(leases.all().len(), 2);
        leases.note_answer(LeaseUse::Holds(34));
        assert_ne!(leases.ask_for(LeaseUse::Holds(34), now).id, first.id);
    }

    /// A member whose space ends with a grant says so, and has granted it.
    #[test]
    fn a_lease_that_may_be_there_although_it_was_refused_is_asked_for_by_the_same_number() {
        for (code, is_same) in [
            (code::EXHAUSTED, true),
            (code::UNAVAILABLE, true),
            (code::DENIED, false),
        ] {
            let (leases, now) = (ClientLeases::default(), Instant::now());
            let first = leases.ask_for(LeaseUse::Session, now);
            let message = String::new();
            leases.note_refusal(LeaseUse::Session, &Status { code, message });
            let again = leases.ask_for(LeaseUse::Session, now);
            assert_eq!(again.id == first.id, is_same, "{code}");
            assert_eq!(again.is_repeated, is_same, "{code}");
        }
    }

    #[test]
    fn holds_of_one_length_share_a_lease_and_short_ones_that_of_the_session() {
        let (leases, now) = (ClientLeases::default(), Instant::now());
        let all_of_it = Duration::from_secs(seconds_for(30 * SECOND));
        leases.add(1, 5 * SECOND, (now, 5 * SECOND), None);
        leases.add(2, all_of_it, (now, all_of_it), Some(now));
        assert_eq!(leases.find(SECOND / 2, now), Some(1));
        assert_eq!(leases.find(2 * SECOND, now), None);
        assert_eq!(leases.find(30 * SECOND, now), Some(2));
        assert_eq!(leases.find(30 * SECOND, now + 40 * SECOND), None);
    }

    /// Members grant no less than one and a half times their election timeout.
    #[test]
    fn a_lease_that_was_granted_for_longer_than_asked_serves_all_holds_of_its_length() {
        let (leases, now) = (ClientLeases::default(), Instant::now());
        leases.add(1, 5 * SECOND, (now, 75 * SECOND), Some(now));
        assert_eq!(leases.find(SECOND / 2, now), Some(1));
        assert_eq!(leases.find(30 * SECOND, now), Some(1));
        assert_eq!(leases.find(80 * SECOND, now), None);
    }

    #[test]
    fn a_lease_that_nobody_needs_is_not_kept_alive_for_ever() {
        let (leases, now) = (ClientLeases::default(), Instant::now());
        leases.add(1, 5 * SECOND, (now, 5 * SECOND), None);
        leases.add(2, 40 * SECOND, (now, 40 * SECOND), Some(now));
        leases.need(2, now + 30 * SECOND);
        assert_eq!(leases.ask(now + 80 * SECOND).len(), 2);
        assert_eq!(leases.ask(now + 90 * SECOND), [1]);
    }
}
