//! [`ForeignHolder`]: a key that a client holds which knows no queue. [`ForeignTurns`]: when such
//! clients last took turns.
//!
//! Such a client frees the key and tells nobody, and may take it again at once. So whoever waits
//! looks often, at times that no loop of the other client can be in step with.

use std::hash::{DefaultHasher, Hash, Hasher};

use lock_store::{Claim, Holder, Instant, LockKey, Mutex, SweepingMap};

use crate::engine::timing;

/// What a waiting request has seen of such a holder.
#[derive(Debug, Default)]
pub(super) struct ForeignHolder {
    /// What it wrote, by its hash, and since when that is there.
    seen: Option<(u64, Instant)>,
    looks: u64,
}

/// When a request of this client last found that such a key had gone from one to the next. The
/// request after it looks as often from its first look.
#[derive(Debug, Default)]
pub(in crate::engine) struct ForeignTurns(Mutex<SweepingMap<LockKey, Instant>>);

impl ForeignTurns {
    fn note(&self, key: &LockKey, now: Instant) {
        let mut turns = self.0.lock();
        turns.sweep(|at| timing::are_foreign_turns_short(*at, now));
        turns.insert(key.clone(), now);
    }

    fn last(&self, key: &LockKey) -> Option<Instant> {
        self.0.lock().get(key).copied()
    }
}

impl ForeignHolder {
    /// When to look again; `None` if the holder is one of this library's, or not known.
    pub(super) fn recheck_at(
        &mut self,
        holder: Option<Holder>,
        claim: &Claim,
        turns: &ForeignTurns,
        now: Instant,
    ) -> Option<Instant> {
        let Some(Holder::Foreign(value)) = holder else {
            self.seen = None;
            return None;
        };
        let since = match self.seen {
            Some((seen, since)) if seen == value => since,
            Some(_) => {
                turns.note(&claim.key, now);
                now
            }
            None => now,
        };
        self.seen = Some((value, since));
        self.looks += 1;
        // The same in each run of a simulation.
        let mut scattered = DefaultHasher::new();
        (claim.owner.request, self.looks).hash(&mut scattered);
        let changed = turns.last(&claim.key);
        let at = timing::recheck_beside_foreign(now, since, changed, scattered.finish());
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use lock_store::{ClientId, Owner};

    use super::*;

    fn claim(key: &str) -> Claim {
        Claim::new(LockKey::from(key), Owner::new(ClientId(1), 1), None)
    }

    /// How long it is until the next look at the key, which has this value now.
    fn pause(
        foreign: &mut ForeignHolder,
        turns: &ForeignTurns,
        key: &str,
        value: Option<u64>,
        now: Instant,
    ) -> Option<Duration> {
        let holder = value.map(Holder::Foreign);
        let at = foreign.recheck_at(holder, &claim(key), turns, now);
        at.map(|at| at.saturating_duration_since(now))
    }

    #[test]
    fn looks_come_at_times_that_no_loop_is_in_step_with() {
        let (mut foreign, start) = (ForeignHolder::default(), Instant::now());
        let turns = ForeignTurns::default();
        let mut looks = |value, now| pause(&mut foreign, &turns, "k", value, now);
        let pauses: Vec<_> = (0..100).filter_map(|_| looks(Some(7), start)).collect();
        let different: BTreeSet<_> = pauses.iter().collect();
        assert!(different.len() > 90, "{pauses:?}");
        let short = |pause: &Duration| *pause < Duration::from_millis(50);
        assert!(pauses.iter().all(short));
        // A value that stays is looked at seldom, until it was gone or is another.
        let later = start + Duration::from_secs(1);
        assert_eq!(looks(Some(7), later), Some(Duration::from_millis(250)));
        assert!(looks(Some(8), later).is_some_and(|pause| short(&pause)));
        assert_eq!(looks(None, later), None);
        let much_later = later + Duration::from_secs(9);
        assert!(looks(Some(8), much_later).is_some_and(|pause| short(&pause)));
    }

    #[test]
    fn the_request_after_one_that_saw_short_turns_at_the_key_looks_often_at_once() {
        let (turns, start) = (ForeignTurns::default(), Instant::now());
        let look = |foreign: &mut ForeignHolder, key, value| {
            let pause = pause(foreign, &turns, key, Some(value), start);
            pause.is_some_and(|pause| pause < Duration::from_millis(1))
        };
        let mut first = ForeignHolder::default();
        assert!(!look(&mut first, "k", 7));
        assert!(look(&mut first, "k", 8));
        assert!(look(&mut ForeignHolder::default(), "k", 9));
        assert!(!look(&mut ForeignHolder::default(), "another", 9));
    }
}
