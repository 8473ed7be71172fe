//! [`Pollers`]: keys that clients without a queue take, too (a loop of `SET NX PX`), so that each
//! side has its turns.
//!
//! A hand-over, in the process or in the store, never frees the key. A client that asks again at
//! once leaves the key free for less time than such a loop sleeps. So a turn of this side is
//! bounded. At its end the key is deleted, the queue is skipped, and this client does not ask for a
//! moment.
//!
//! A turn lasts as long as the other side had the key before, with the moment in which it was left
//! alone. If nobody was seen to take it, the next turn is twice as long as the last. If they got it
//! between two holds of this side, the rest is added to its next turn. A client that never had it
//! is looked for where names are shared on purpose, in the empty namespace: the key is left alone
//! now and then, the first time soon.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_store::{Holder, Instant, LockKey, Mutex, SweepingMap};

use crate::config::SEEN_FOR;

/// How long the key is left alone: longer than the pause of an impatient loop.
const FREE_FOR: Duration = Duration::from_millis(15);
/// The shortest turn of this side.
const TURN_LEAST: Duration = Duration::from_millis(20);
/// The longest turn of this side.
const TURN_MOST: Duration = Duration::from_millis(250);
/// The shortest turn of this side where nobody else was seen.
const TURN_ALONE_LEAST: Duration = Duration::from_millis(100);
/// The longest turn of this side where nobody else was seen.
const TURN_ALONE_MOST: Duration = Duration::from_secs(1);
/// How late a first look after the moment may be that still finds those who took the key in it.
const LOOKS_WITHIN: Duration = Duration::from_millis(20);

/// What is known of keys that clients without a queue take, or may take.
#[derive(Debug, Default)]
pub(crate) struct Pollers {
    keys: Mutex<SweepingMap<LockKey, Contest>>,
    /// There was one. Without, no lock is taken.
    has_any: AtomicBool,
}

#[derive(Debug, Default)]
struct Contest {
    /// When such a client was last seen to have the key.
    seen: Option<Instant>,
    /// Since when this side waits for such clients.
    theirs_since: Option<Instant>,
    /// The end of this side's turn, once it has begun.
    ours_until: Option<Instant>,
    /// How long this side's last turn was to be.
    turn: Duration,
    /// The rest of a turn in which the other side got the key; or found it free, since another
    /// process of this side had ended its own.
    owed: Duration,
    free_until: Option<Instant>,
    /// When this side last ended its turn.
    turn_ended: Option<Instant>,
    /// When this side last asked for it in the order of arrival, which ends where a key is free.
    fair: Option<Instant>,
}

impl Pollers {
    /// Notes who has a key that this side waits for. Its names are shared in the empty namespace.
    pub(crate) fn note_busy(&self, key: &LockKey, holder: Holder, is_shared: bool, now: Instant) {
        match holder {
            Holder::Foreign(_) => self.enter(key, now, |contest| {
                let ours_until = contest.ours_until.take();
                if !contest.is_seen(now) {
                    (contest.theirs_since, contest.owed) = (None, Duration::ZERO);
                } else if let Some(until) = ours_until {
                    contest.owed = until.saturating_duration_since(now);
                }
                contest.seen = Some(now);
                let since = contest.theirs_from(now).unwrap_or(now);
                contest.theirs_since.get_or_insert(since);
            }),
            _ if is_shared => self.note_wanted(key, now),
            _ => self.note_granted(key, now),
        }
    }

    /// Notes that several of this side want a key whose name is shared.
    pub(crate) fn note_wanted(&self, key: &LockKey, now: Instant) {
        self.enter(key, now, |contest| _ = contest.begin_turn(now));
    }

    /// Whether there was such a client. Without, nothing else here says anything.
    pub(crate) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Relaxed)
    }

    /// Notes that this side has got the key.
    pub(crate) fn note_granted(&self, key: &LockKey, now: Instant) {
        self.at(key, |contest| _ = contest.begin_turn(now));
    }

    /// Whether this side's turn is over. Then the key is to be left free until the returned time.
    pub(crate) fn end_turn(&self, key: &LockKey, now: Instant) -> Option<Instant> {
        self.at(key, |contest| {
            if now < contest.begin_turn(now) || contest.is_fair(now) {
                return None;
            }
            (contest.ours_until, contest.turn_ended) = (None, Some(now));
            contest.free_until = Some(now + FREE_FOR);
            contest.free_until
        })?
    }

    /// Until when this client leaves the key alone.
    pub(crate) fn free_until(&self, key: &LockKey, now: Instant) -> Option<Instant> {
        let until = self.at(key, |contest| contest.free_until)??;
        (until > now).then_some(until)
    }

    /// Notes that this side asks for a key in the order of arrival: it is not left free.
    pub(crate) fn note_fair(&self, key: &LockKey, now: Instant) {
        self.enter(key, now, |contest| contest.fair = Some(now));
    }

    fn enter(&self, key: &LockKey, now: Instant, change: impl FnOnce(&mut Contest)) {
        let mut keys = self.keys.lock();
        keys.sweep(|contest| contest.is_in_use(now));
        match keys.get_mut(key) {
            Some(contest) => change(contest),
            None => change(keys.entry(key.clone()).or_default()),
        }
        self.has_any.store(true, Ordering::Relaxed);
    }

    fn at<T>(&self, key: &LockKey, read: impl FnOnce(&mut Contest) -> T) -> Option<T> {
        if !self.has_any() {
            return None;
        }
        self.keys.lock().get_mut(key).map(read)
    }
}

impl Contest {
    fn is_in_use(&self, now: Instant) -> bool {
        let lately = |at: Option<Instant>| at.is_some_and(|at| at + SEEN_FOR > now);
        self.is_seen(now) || lately(self.ours_until) || lately(self.free_until) || self.is_fair(now)
    }

    fn is_seen(&self, now: Instant) -> bool {
        self.seen.is_some_and(|seen| seen + SEEN_FOR > now)
    }

    fn is_fair(&self, now: Instant) -> bool {
        self.fair.is_some_and(|at| at + SEEN_FOR > now)
    }

    /// Since when they can have it: since this side ended its turn, if that was just now.
    fn theirs_from(&self, now: Instant) -> Option<Instant> {
        self.turn_ended
            .filter(|ended| *ended + FREE_FOR + LOOKS_WITHIN > now)
    }

    /// Begins this side's turn, unless it has begun. When it ends.
    fn begin_turn(&mut self, now: Instant) -> Instant {
        if let Some(until) = self.ours_until {
            return until;
        }
        let is_seen = self.is_seen(now);
        self.turn = match self.theirs_since.take() {
            Some(since) if is_seen => now.saturating_duration_since(since),
            // Nobody has taken the free key, or their pauses are longer than the moment.
            _ => 2 * self.turn,
        };
        self.turn_ended = None;
        self.turn = match is_seen {
            true => self.turn.clamp(TURN_LEAST, TURN_MOST),
            false => self.turn.clamp(TURN_ALONE_LEAST, TURN_ALONE_MOST),
        };
        let with_rest = self.turn + mem::take(&mut self.owed);
        let until = now + with_rest.min(TURN_MOST.max(self.turn));
        self.ours_until = Some(until);
        until
    }
}

#[cfg(test)]
mod tests {
    use lock_store::{ClientId, Owner};

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const FOREIGN: Holder = Holder::Foreign(7);

    fn key() -> LockKey {
        LockKey::from("k")
    }

    #[test]
    fn a_turn_lasts_as_long_as_the_others_had_the_key() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_busy(&key(), FOREIGN, true, start);
        pollers.note_busy(&key(), FOREIGN, true, start + 70 * MS);
        let got = start + 100 * MS;
        pollers.note_granted(&key(), got);
        assert_eq!(pollers.end_turn(&key(), got + 99 * MS), None);
        let ended = got + 100 * MS;
        assert_eq!(pollers.end_turn(&key(), ended), Some(ended + FREE_FOR));
        let until = pollers.free_until(&key(), ended + 14 * MS);
        assert_eq!(until, Some(ended + FREE_FOR));
        assert_eq!(pollers.free_until(&key(), ended + 15 * MS), None);
    }

    #[test]
    fn the_moment_in_which_the_key_was_left_alone_counts_as_theirs() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_busy(&key(), FOREIGN, true, start);
        pollers.note_granted(&key(), start + MS);
        let left = start + 30 * MS;
        assert!(pollers.end_turn(&key(), left).is_some());
        pollers.note_busy(&key(), FOREIGN, true, left + FREE_FOR);
        let got = left + 40 * MS;
        pollers.note_granted(&key(), got);
        assert_eq!(pollers.end_turn(&key(), got + 39 * MS), None);
        assert!(pollers.end_turn(&key(), got + 40 * MS).is_some());
    }

    #[test]
    fn the_rest_of_a_turn_that_they_broke_into_is_added_to_the_next() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_busy(&key(), FOREIGN, true, start);
        let got = start + 60 * MS;
        pollers.note_granted(&key(), got);
        pollers.note_busy(&key(), FOREIGN, true, got + 10 * MS);
        pollers.note_busy(&key(), FOREIGN, true, got + 30 * MS);
        let again = got + 40 * MS;
        pollers.note_granted(&key(), again);
        assert_eq!(pollers.end_turn(&key(), again + 79 * MS), None);
        assert!(pollers.end_turn(&key(), again + 80 * MS).is_some());
        // That turn has ended, and nothing is left of it.
        pollers.note_busy(&key(), FOREIGN, true, again + 200 * MS);
        let last = again + 230 * MS;
        pollers.note_granted(&key(), last);
        assert!(pollers.end_turn(&key(), last + 30 * MS).is_some());
    }

    #[test]
    fn a_turn_in_which_nobody_else_was_known_leaves_nothing_over() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_wanted(&key(), start);
        pollers.note_busy(&key(), FOREIGN, true, start + 10 * MS);
        let got = start + 40 * MS;
        pollers.note_granted(&key(), got);
        assert_eq!(pollers.end_turn(&key(), got + 29 * MS), None);
        assert!(pollers.end_turn(&key(), got + 30 * MS).is_some());
    }

    #[test]
    fn a_wait_that_was_given_up_long_ago_makes_no_turn_longer() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_busy(&key(), FOREIGN, true, start);
        let later = start + 3600 * 1000 * MS;
        pollers.note_busy(&key(), FOREIGN, true, later);
        let got = later + 30 * MS;
        pollers.note_granted(&key(), got);
        assert_eq!(pollers.end_turn(&key(), got + 29 * MS), None);
        assert!(pollers.end_turn(&key(), got + 30 * MS).is_some());
    }

    #[test]
    fn a_turn_does_not_last_as_long_as_nobody_asked() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_busy(&key(), FOREIGN, true, start);
        let later = start + 3600 * 1000 * MS;
        pollers.note_granted(&key(), later);
        assert!(pollers.end_turn(&key(), later + TURN_ALONE_LEAST).is_some());
    }

    #[test]
    fn a_key_that_is_asked_for_in_the_order_of_arrival_is_not_left_free() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_busy(&key(), FOREIGN, true, start);
        pollers.note_fair(&key(), start);
        assert_eq!(pollers.end_turn(&key(), start + TURN_MOST), None);
        assert!(pollers.end_turn(&key(), start + SEEN_FOR).is_some());
    }

    #[test]
    fn turns_grow_while_nobody_takes_the_free_key_and_are_bounded() {
        let (pollers, start) = (Pollers::default(), Instant::now());
        pollers.note_busy(&key(), FOREIGN, true, start);
        let mut now = start + MS;
        let mut turns = Vec::new();
        for _ in 0..6 {
            let began = now;
            pollers.note_granted(&key(), began);
            while pollers.end_turn(&key(), now).is_none() {
                now += MS;
            }
            turns.push(now.saturating_duration_since(began).as_millis());
        }
        assert_eq!(turns, [20, 40, 80, 160, 250, 250]);
    }

    #[test]
    fn without_such_a_client_the_key_is_left_alone_seldom_and_in_the_empty_namespace_only() {
        let start = Instant::now();
        let ours = Holder::Owner(Owner::new(ClientId(1), 1));
        for is_shared in [true, false] {
            let pollers = Pollers::default();
            pollers.note_busy(&key(), ours, is_shared, start);
            let mut now = start;
            for turn in [100, 200, 400, 800, 1000, 1000] {
                pollers.note_busy(&key(), ours, is_shared, now);
                assert_eq!(pollers.end_turn(&key(), now + (turn - 1) * MS), None);
                now += turn * MS;
                let left = pollers.end_turn(&key(), now);
                assert_eq!(left.is_some(), is_shared, "{turn}");
            }
        }
    }
}
