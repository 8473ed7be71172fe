//! [`Rivals`]: which keys Redisson takes beside us, so that both sides have their turns.
//!
//! Everybody who waits is told at once that a lock is free, and who asks first gets it. A Java
//! client takes some milliseconds for that, and would come too late again and again. So behind a
//! hold of this library, Redisson has a head start. One that is fast has several turns in it, which
//! are made up for: some head starts are left out. And an `RSpinLock` tells nobody at all.

use std::time::Duration;

use lock_store::{Holder, Instant, LockKey, Mutex, SweepingMap};

use crate::config::SEEN_FOR;
use crate::random;

/// Behind a hold of this library, Redisson has about so long to come first.
const HEAD_START: Duration = Duration::from_millis(6);
/// The head start doubles so often if nobody comes, as from a client that sleeps between its tries.
const DOUBLED: u32 = 4;
/// After the last doubling, wait this many head starts before the next one.
const WITHOUT: u32 = 10;
/// After so many turns of Redisson, this client has one more without a head start.
const TURNS_PER_OURS: u32 = 3;
/// Older turns of Redisson are not made up for.
const TURNS_MOST: u32 = 10 * TURNS_PER_OURS;
/// None is left out later than this after Redisson was seen: who waits there waits little longer.
const MADE_UP_WITHIN: Duration = Duration::from_millis(100);
/// A hold that ended before that gives nobody a head start.
const LATELY: Duration = Duration::from_millis(50);
/// How long a waiter sleeps, at most, where releases are silent.
const SILENT_LOOK: Duration = Duration::from_millis(10);
/// Each look comes after this time, and a part of another.
const LEAST_LOOK: Duration = Duration::from_millis(1);
/// How long a waiter sleeps at most before its second look at a hold of Redisson. Each time it is
/// found there again, that doubles.
const SECOND_LOOK: Duration = Duration::from_millis(20);

/// What is known of keys that Redisson takes, too.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    keys: Mutex<SweepingMap<LockKey, Rival>>,
}

/// What a waiter found beside the holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    pub(super) now: Instant,
    /// When the hold ends, if it does.
    pub(super) ends: Option<Instant>,
    /// When the last release was heard of.
    pub(super) heard: Option<Instant>,
}

impl Sighting {
    /// Whether the hold may be another than that of an earlier look. A renewal may look so, too.
    fn is_of_another_hold(&self, before: &Sighting) -> bool {
        match (self.ends, before.ends) {
            (Some(ends), Some(before)) => ends > before + SECOND_LOOK,
            (ends, before) => ends != before,
        }
    }
}

#[derive(Debug, Default)]
struct Rival {
    /// When Redisson had it.
    seen: Option<Instant>,
    /// When a client of this library had it, if that is the last that is known.
    ours: Option<Instant>,
    /// For how long this library is known to have held it since Redisson had it.
    held: Duration,
    /// Since when a hold of this library goes on that `held` leaves out.
    held_from: Option<Instant>,
    /// Head starts since Redisson was seen in which it did not come.
    in_vain: u32,
    /// Until then there is none.
    without_until: Option<Instant>,
    /// Who had it at the last look of a waiter.
    holder: Option<(Holder, Sighting)>,
    /// How many looks have found this hold again.
    looks: u32,
    /// When it was found to be released without a message.
    silent: Option<Instant>,
    /// Turns of Redisson that a waiter found, and that are not made up for.
    turns: u32,
}

impl Rivals {
    /// Notes that this client has got the key.
    pub(super) fn note_granted(&self, key: &LockKey, now: Instant) {
        if let Some(rival) = self.keys.lock().get_mut(key) {
            rival.held_from = Some(now);
        }
    }

    /// Notes that this client has released the key.
    pub(super) fn note_released(&self, key: &LockKey, now: Instant) {
        if let Some(rival) = self.keys.lock().get_mut(key) {
            rival.note_ours(now);
            rival.held_from = None;
        }
    }

    /// Notes who has the key, and what was found if it was a waiter for an exclusive lock that
    /// looked. Returns when the waiter must ask again without a message. (Who has a lock in shares
    /// may change without a message: the readers' first ends, and others read on.)
    pub(super) fn note_busy(
        &self,
        key: &LockKey,
        holder: Holder,
        look: Option<Sighting>,
        now: Instant,
    ) -> Option<Duration> {
        let is_foreign = matches!(holder, Holder::Foreign(_));
        let mut keys = self.keys.lock();
        keys.sweep(|rival| rival.is_expected(now));
        let rival = match keys.get_mut(key) {
            Some(rival) => rival,
            None if is_foreign => keys.entry(key.clone()).or_default(),
            None => return None,
        };
        if is_foreign {
            (rival.seen, rival.ours) = (Some(now), None);
            (rival.held, rival.held_from) = (Duration::ZERO, None);
            rival.note_came();
        } else {
            rival.note_ours(now);
            rival.held_from = Some(now);
        }
        rival.note(holder, look?);
        let most = match rival.silent.is_some_and(|silent| silent + SEEN_FOR > now) {
            true => SILENT_LOOK,
            false if is_foreign => SECOND_LOOK * (1 << rival.looks.min(16)),
            false => return None,
        };
        Some(LEAST_LOOK + random::below(most))
    }

    /// Whether Redisson was seen there lately.
    pub(super) fn are_expected(&self, key: &LockKey, now: Instant) -> bool {
        let mut keys = self.keys.lock();
        keys.get_mut(key)
            .is_some_and(|rival| rival.is_expected(now))
    }

    /// How long to let Redisson go first. `heard` is when the last release was heard of.
    pub(super) fn head_start(
        &self,
        key: &LockKey,
        heard: Option<Instant>,
        now: Instant,
    ) -> Option<Duration> {
        let mut keys = self.keys.lock();
        let rival = keys.get_mut(key)?;
        let is_lately = |at: Option<Instant>, time| at.is_some_and(|at| at + time > now);
        let ended = rival.ours.max(rival.ours.and(heard));
        let is_given = is_lately(ended, LATELY) && rival.is_expected(now);
        if !is_given || rival.without_until.is_some_and(|until| now < until) {
            return None;
        }
        if rival.turns >= TURNS_PER_OURS && is_lately(rival.seen, MADE_UP_WITHIN) {
            rival.turns -= TURNS_PER_OURS;
            return None;
        }
        let about = HEAD_START * (1 << rival.in_vain);
        if rival.in_vain == DOUBLED {
            rival.without_until = Some(now + about * WITHOUT);
        } else {
            rival.in_vain += 1;
        }
        Some(about / 2 + random::below(about))
    }

    /// Notes that somebody released the key during a head start.
    pub(super) fn note_came(&self, key: &LockKey) {
        if let Some(rival) = self.keys.lock().get_mut(key) {
            rival.note_came();
        }
    }
}

impl Rival {
    fn note_came(&mut self) {
        (self.in_vain, self.without_until) = (0, None);
    }

    /// Notes that this library has the key, or has released it.
    fn note_ours(&mut self, now: Instant) {
        self.ours = Some(now);
        self.held += self.held_from.map_or(Duration::ZERO, |from| now - from);
    }

    /// Whether Redisson was seen lately. It can't be while this library holds the key.
    fn is_expected(&self, now: Instant) -> bool {
        self.seen
            .is_some_and(|seen| seen + self.held + SEEN_FOR > now)
    }

    fn note(&mut self, holder: Holder, look: Sighting) {
        let Some((before, earlier)) = self.holder.replace((holder, look)) else {
            return;
        };
        let is_told = look.heard.is_some_and(|heard| heard >= earlier.now);
        if before != holder && !is_told && matches!(before, Holder::Foreign(_)) {
            self.silent = Some(look.now);
        }
        let is_same = before == holder && !is_told && !look.is_of_another_hold(&earlier);
        self.looks = if is_same { self.looks + 1 } else { 0 };
        // The lease's end alone proves no other turn: a renewal moves it, too.
        if (before != holder || is_told) && matches!(holder, Holder::Foreign(_)) {
            self.turns = (self.turns + 1).min(TURNS_MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_store::{ClientId, Owner};

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(0) + Duration::from_millis(millis)
    }

    fn look(now: u64, ends: u64, heard: Option<u64>) -> Sighting {
        Sighting {
            now: at(now),
            ends: Some(at(ends)),
            heard: heard.map(at),
        }
    }

    const JAVA: Holder = Holder::Foreign(1);
    const OTHER: Holder = Holder::Foreign(2);
    const OURS: Holder = Holder::Owner(Owner {
        client: ClientId(1),
        request: 1,
    });

    #[test]
    fn a_head_start_doubles_until_redisson_comes() {
        let (rivals, key) = (Rivals::default(), LockKey::from("k"));
        assert_eq!(rivals.head_start(&key, None, at(0)), None);
        rivals.note_busy(&key, JAVA, None, at(0));
        assert_eq!(
            rivals.head_start(&key, None, at(1)),
            None,
            "it has just had it"
        );
        rivals.note_released(&key, at(10));
        for came in [true, false] {
            for doubled in 0..=DOUBLED {
                let about = HEAD_START * (1 << doubled);
                let head_start = rivals.head_start(&key, None, at(10));
                assert!(head_start.is_some_and(|it| it >= about / 2 && it < about * 3 / 2));
                if came && doubled == DOUBLED - 1 {
                    rivals.note_came(&key);
                    break;
                }
            }
        }
        assert_eq!(
            rivals.head_start(&key, None, at(10)),
            None,
            "it does not come"
        );
        rivals.note_released(&key, at(1000));
        let longest = HEAD_START * (1 << DOUBLED);
        let head_start = rivals.head_start(&key, None, at(1000));
        assert!(head_start.is_some_and(|it| it >= longest / 2));
        assert_eq!(rivals.head_start(&key, None, at(1000)), None);
        rivals.note_released(&key, at(10_001));
        assert_eq!(
            rivals.head_start(&key, None, at(10_001)),
            None,
            "no longer expected"
        );
    }

    #[test]
    fn turns_that_redisson_had_are_made_up_for_without_head_starts() {
        // After that many turns, each found that often, the end later by so much each time: how
        // many head starts are left out that late.
        let left_out = |turns: u64, looks: u64, added: u64, holder: Holder, later: u64| {
            let (rivals, key) = (Rivals::default(), LockKey::from("k"));
            rivals.note_busy(&key, JAVA, Some(look(0, 1000, None)), at(0));
            for look_no in 0..turns * looks {
                let turn = 1 + look_no / looks;
                let now = turn * 10 + look_no % looks;
                let found = look(now, 1000 + look_no * added, Some(turn * 10 - 1));
                rivals.note_busy(&key, holder, Some(found), at(now));
            }
            let now = at(turns * 10 + later);
            rivals.note_busy(&key, JAVA, None, at(turns * 10));
            rivals.note_released(&key, now);
            (0..20).position(|_| rivals.head_start(&key, None, now).is_some())
        };
        assert_eq!(left_out(2, 1, 0, JAVA, 5), Some(0));
        assert_eq!(left_out(3, 1, 0, JAVA, 5), Some(1));
        assert_eq!(left_out(7, 1, 0, JAVA, 5), Some(2));
        assert_eq!(left_out(1000, 1, 0, JAVA, 5), Some(10));
        assert_eq!(left_out(7, 5, 0, JAVA, 5), Some(2), "looks at one hold");
        assert_eq!(left_out(1, 30, 10_000, JAVA, 5), Some(0), "renewals");
        assert_eq!(left_out(7, 1, 0, OURS, 5), Some(0), "turns of this library");
        assert_eq!(left_out(7, 1, 0, JAVA, 200), Some(0), "a long hold of ours");
    }

    #[test]
    fn redisson_is_expected_behind_a_hold_of_ours_however_long_that_was() {
        for by_looks in [false, true] {
            let (rivals, key) = (Rivals::default(), LockKey::from("k"));
            rivals.note_busy(&key, JAVA, None, at(0));
            rivals.note_granted(&key, at(5));
            for second in (1..60).filter(|_| by_looks) {
                rivals.note_busy(&key, OURS, None, at(second * 1000));
            }
            rivals.note_released(&key, at(60_000));
            assert!(rivals.head_start(&key, None, at(60_001)).is_some());
            assert!(rivals.are_expected(&key, at(69_900)));
            assert!(!rivals.are_expected(&key, at(70_001)), "nobody had it");
        }
    }

    #[test]
    fn a_release_that_is_heard_of_is_one_of_this_library_if_it_was_the_holder() {
        let is_given = |holder, heard| {
            let (rivals, key) = (Rivals::default(), LockKey::from("k"));
            rivals.note_busy(&key, JAVA, None, at(0));
            rivals.note_busy(&key, holder, None, at(10));
            rivals.head_start(&key, heard, at(100)).is_some()
        };
        assert!(is_given(OURS, Some(at(99))));
        assert!(!is_given(OURS, None));
        assert!(!is_given(JAVA, Some(at(99))));
    }

    #[test]
    fn releases_are_silent_if_the_holder_changes_and_nobody_has_heard_of_it() {
        let is_silent = |second: Holder, heard| {
            let (rivals, key) = (Rivals::default(), LockKey::from("k"));
            rivals.note_busy(&key, JAVA, Some(look(0, 1000, None)), at(0));
            rivals.note_busy(&key, second, Some(look(10, 1000, heard)), at(10));
            let keys = rivals.keys.lock();
            keys.get(&key).is_some_and(|rival| rival.silent.is_some())
        };
        assert!(is_silent(OTHER, None));
        assert!(!is_silent(OTHER, Some(5)));
        assert!(!is_silent(JAVA, None));
    }

    #[test]
    fn looks_become_rare_while_one_hold_lasts() {
        let (rivals, key) = (Rivals::default(), LockKey::from("k"));
        let looks = |now, ends| {
            rivals.note_busy(&key, JAVA, Some(look(now, ends, None)), at(now));
            rivals.keys.lock().get(&key).map(|rival| rival.looks)
        };
        let (first, again) = (looks(0, 1000), [looks(10, 1000), looks(30, 1000)]);
        assert_eq!((first, again), (Some(0), [Some(1), Some(2)]));
        assert_eq!(looks(60, 1060), Some(0), "taken again, or renewed");
    }
}
