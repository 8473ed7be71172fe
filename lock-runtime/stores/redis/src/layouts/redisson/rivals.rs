//! [`Rivals`]: which keys Redisson takes beside us, so that both sides have their turns.
//!
//! Everybody who waits is told at once that a lock is free, and who asks first gets it. A Java
//! client takes some milliseconds for that, and would come too late again and again. And an
//! `RSpinLock` tells nobody at all.

use std::time::Duration;

use lock_store::{Holder, Instant, LockKey, Mutex, SweepingMap};

use crate::random;

/// Redisson is expected at a key for this time after it was last seen there.
const SEEN_FOR: Duration = Duration::from_secs(10);
/// Behind a hold of this library, Redisson has so long to come first.
const HEAD_START: Duration = Duration::from_millis(6);
/// A hold that ended before that gives nobody a head start.
const LATELY: Duration = Duration::from_millis(50);
/// How long a waiter sleeps, at most, where releases are silent.
const SILENT_LOOK: Duration = Duration::from_millis(30);

/// What is known of keys that Redisson takes, too.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    keys: Mutex<SweepingMap<LockKey, Rival>>,
}

#[derive(Debug, Default)]
struct Rival {
    /// When Redisson had it.
    seen: Option<Instant>,
    /// When a client of this library had it, if that is the last that is known.
    ours: Option<Instant>,
    /// Who had it at the last look of a waiter.
    holder: Option<(Holder, Instant)>,
    /// When it was found to be released without a message.
    silent: Option<Instant>,
}

impl Rivals {
    /// Notes that this client has released the key.
    pub(super) fn released(&self, key: &LockKey, now: Instant) {
        if let Some(rival) = self.keys.lock().get_mut(key) {
            rival.ours = Some(now);
        }
    }

    /// Notes who has the key. `heard` is when the last release was heard of by one who waits.
    /// When to look again, if releases are silent.
    pub(super) fn busy(
        &self,
        key: &LockKey,
        holder: Holder,
        waits: bool,
        heard: Option<Instant>,
        now: Instant,
    ) -> Option<Duration> {
        let is_foreign = matches!(holder, Holder::Foreign(_));
        let mut keys = self.keys.lock();
        keys.sweep(|rival| rival.seen.is_some_and(|seen| seen + SEEN_FOR > now));
        let rival = match keys.get_mut(key) {
            Some(rival) => rival,
            None if is_foreign => keys.entry(key.clone()).or_default(),
            None => return None,
        };
        if is_foreign {
            (rival.seen, rival.ours) = (Some(now), None);
        } else {
            rival.ours = Some(now);
        }
        if waits {
            let before = rival.holder.replace((holder, now));
            if let Some((Holder::Foreign(before), at)) = before
                && holder != Holder::Foreign(before)
                && heard.is_none_or(|heard| heard < at)
            {
                rival.silent = Some(now);
            }
        }
        let silent = rival.silent?;
        (silent + SEEN_FOR > now).then(|| random::below(SILENT_LOOK))
    }

    /// How long to let Redisson go first.
    pub(super) fn head_start(&self, key: &LockKey, now: Instant) -> Option<Duration> {
        let mut keys = self.keys.lock();
        let rival = keys.get_mut(key)?;
        let is_lately = |at: Option<Instant>, time| at.is_some_and(|at| at + time > now);
        let is_given = is_lately(rival.ours, LATELY) && is_lately(rival.seen, SEEN_FOR);
        is_given.then(|| HEAD_START / 2 + random::below(HEAD_START))
    }
}
