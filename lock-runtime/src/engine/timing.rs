//! Decisions about time: by when an answer must be there, when to recheck, when a hold ends,
//! when to renew, when to try again.
//!
//! All instants are on the client's monotonic clock, which a suspended machine does not stop. Each
//! rule is a function of its own, to be read and tested alone.

use std::time::Duration;

use lock_store::timing::{
    BACKOFF_MAX, BACKOFF_MIN, FALLBACK_POLL, MIN_LEASE, drift_margin, recheck_in, trusted,
};
use lock_store::{Clock, Instant};

use crate::config::{Defaults, FIRST_LEASE, Resolved, Wait};

pub(crate) use lock_store::timing::{backoff, is_cut};

/// A wait without end fails after this many grants that could not be used. Most likely the lease is
/// too short for the network.
pub(crate) const UNUSABLE_GRANTS: u32 = 5;
/// The shortest pause between looks at a key of a client without a queue.
const FOREIGN_LEAST: Duration = Duration::from_millis(2);
/// The longest pause while such clients take short turns. Between two of them, the key is free for
/// 50 to 500 µs. An alarm is up to 1 ms late, so this is 1 to 2 ms in fact.
const FOREIGN_TURNS: Duration = Duration::from_millis(1);
/// How long such turns are expected to go on.
const FOREIGN_TURNS_LAST: Duration = Duration::from_millis(50);
/// The longest pause between looks at a value that such a client wrote a moment ago.
const FOREIGN_FIRST: Duration = Duration::from_millis(10);
/// The longest pause between looks at a value that is as old as this, and older.
const FOREIGN_MOST: Duration = Duration::from_millis(50);
/// The pause between looks at a value that has been there for [`FOREIGN_LASTS`].
const FOREIGN_SELDOM: Duration = Duration::from_millis(250);
/// After this time, a foreign value is expected to stay, and looks are rare.
const FOREIGN_LASTS: Duration = Duration::from_secs(1);
/// A wait without end for several keys fails after this many gatherings that each lost a key.
pub(crate) const LOST_GATHERINGS: u32 = 5;

/// The time one request may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) started: Instant,
    wait: Wait,
    command_timeout: Duration,
    dead_after: Duration,
    unavailable_after: Option<Duration>,
}

impl Budget {
    pub(crate) fn new(started: Instant, wait: Wait, defaults: &Defaults) -> Self {
        let dead_after = defaults.wait.max(defaults.command_timeout);
        Self {
            started,
            wait,
            command_timeout: defaults.command_timeout,
            dead_after,
            unavailable_after: defaults.unavailable_after,
        }
    }

    /// Whether the request may wait at all.
    pub(crate) fn may_wait(self) -> bool {
        self.wait != Wait::For(Duration::ZERO)
    }

    /// When the wait is over and a busy lock is reported.
    pub(crate) fn end(&self) -> Option<Instant> {
        match self.wait {
            Wait::For(wait) => Some(self.started + wait),
            Wait::Forever => None,
        }
    }

    /// When the request ends at the latest if the store last answered at `answered`: then the store
    /// is reported as dead, whatever is under way.
    pub(crate) fn latest_end(&self, answered: Option<Instant>) -> Instant {
        match self.wait {
            Wait::For(wait) => self.started + wait.max(self.command_timeout),
            Wait::Forever => {
                answered.map_or(self.started, |at| at.max(self.started)) + self.dead_after
            }
        }
    }

    /// When a store that fails since `failing_since` is reported as dead. A request that came later
    /// has the time of one command.
    pub(crate) fn lose_patience_at(&self, failing_since: Instant) -> Instant {
        match self.wait {
            Wait::For(_) => self.latest_end(None),
            Wait::Forever => {
                (failing_since + self.dead_after).max(self.started + self.command_timeout)
            }
        }
    }

    /// When a request ends because the store has been silent since then, whatever is left of its
    /// wait. A request that came later has the time of one command.
    pub(crate) fn silence_ends(&self, silent_since: Option<Instant>) -> Option<Instant> {
        let ends = silent_since? + self.unavailable_after?;
        Some(ends.max(self.started + self.command_timeout))
    }

    /// That time, or when the store's silence ends the request before.
    pub(crate) fn cut_by_silence(&self, at: Instant, silent_since: Option<Instant>) -> Instant {
        self.silence_ends(silent_since)
            .map_or(at, |ends| ends.min(at))
    }

    /// By when a command sent now must be answered. A request without end may go on after the time
    /// when it might have given up.
    pub(crate) fn command_by(&self, now: Instant, gives_up: Instant) -> Instant {
        let by = now + self.command_timeout;
        match self.wait {
            Wait::Forever if gives_up <= now => by,
            _ => by.min(gives_up),
        }
    }

    /// Whether failures or silence may end the request before its time.
    pub(crate) fn may_end_early(&self) -> bool {
        self.wait == Wait::Forever || self.unavailable_after.is_some()
    }

    /// By when the last question of a request must be answered, if it is asked now.
    pub(crate) fn last_answer_by(&self, now: Instant) -> Instant {
        match self.wait {
            Wait::For(_) => self.latest_end(None).max(now),
            Wait::Forever => now + self.command_timeout,
        }
    }

    /// Whether a command had so little time that its silence says nothing about the store.
    pub(crate) fn is_cut(&self, sent: Instant, by: Instant) -> bool {
        is_cut(sent, by, self.command_timeout)
    }

    /// Only an answer after this is recent enough to call the lock busy at the end. A silent store
    /// must be noticed while there is time for a command.
    pub(crate) fn last_recheck(&self) -> Option<Instant> {
        match self.wait {
            Wait::For(wait) => Some(self.started + wait - self.command_timeout.min(wait / 2)),
            Wait::Forever => None,
        }
    }
}

/// Whether a command got no answer because this process stood still. Such a failure is noticed long
/// after the command's time was over. It says nothing about the store.
pub(crate) fn stood_still(sent: Instant, now: Instant, command_timeout: Duration) -> bool {
    now > sent + 2 * command_timeout
}

/// How long a look at a key may take, if its first asker has `left` of its time. Others share the
/// result. So the look is never so short that silence would say nothing about the store.
pub(crate) fn look_time(left: Duration, command_timeout: Duration) -> Duration {
    // A store of several servers may answer for most of them at the very end of its time.
    (left * 9 / 10).max(command_timeout / 2)
}

/// A failure that nobody has met again for this long says nothing about now. The pauses between
/// tries are shorter.
pub(crate) const FAILURE_LASTS: Duration = Duration::from_secs(5);

/// The same of a silence. After the longest pause, a command may be found unanswered as late as two
/// command timeouts after it was sent ([`stood_still`]).
pub(crate) fn silence_lasts(command_timeout: Duration) -> Duration {
    FAILURE_LASTS.max(BACKOFF_MAX + 2 * command_timeout)
}

/// When a waiter rechecks without a message: messages can be lost, and a dead holder's lease ends
/// silently.
///
/// `look_in` is when the store wants to be asked again, from now on, if it has said so.
pub(crate) fn recheck_at(
    sent: Instant,
    now: Instant,
    remaining: Option<Duration>,
    look_in: Option<Duration>,
) -> Instant {
    match look_in {
        // The store must hear of this client as often as of any other.
        Some(look_in) => now + look_in.clamp(MIN_LEASE, FALLBACK_POLL),
        None => next_recheck(sent, remaining),
    }
}

/// When to look again, if the store has not said when.
pub(crate) fn next_recheck(sent: Instant, remaining: Option<Duration>) -> Instant {
    sent + recheck_in(remaining).max(MIN_LEASE)
}

/// When to look again at a key that, as far as is known, a client without a queue has held since
/// then. The longer it lasts, the longer it is expected to. If it was found at `changed` to go
/// from one such client to the next, it is free for moments only. `scattered` is any number: it
/// makes the time between looks vary.
pub(crate) fn recheck_beside_foreign(
    now: Instant,
    since: Instant,
    changed: Option<Instant>,
    scattered: u64,
) -> Instant {
    let age = now.saturating_duration_since(since);
    if age >= FOREIGN_LASTS {
        return now + FOREIGN_SELDOM;
    }
    let (least, most) = match changed.is_some_and(|at| are_foreign_turns_short(at, now)) {
        true => (FOREIGN_TURNS / 2, FOREIGN_TURNS),
        false => (FOREIGN_LEAST, age.clamp(FOREIGN_FIRST, FOREIGN_MOST)),
    };
    let more = scattered % u64::try_from((most - least).as_micros()).unwrap_or(1);
    now + least + Duration::from_micros(more)
}

/// Whether a key that was found at `changed` to go from one client without a queue to the next most
/// likely goes on to.
pub(crate) fn are_foreign_turns_short(changed: Instant, now: Instant) -> bool {
    changed + FOREIGN_TURNS_LAST > now
}

/// The lease of a hand-over. A grant that nobody picks up costs the others this much.
pub(crate) fn first_lease(lease: Duration) -> Duration {
    lease.min(FIRST_LEASE)
}

/// The end of the trust in a grant with a request that was sent at `sent`.
pub(crate) fn deadline(sent: Instant, lease: Duration) -> Instant {
    sent + trusted(lease)
}

/// The end of the trust in a grant, by its send time or earlier if the store said so.
pub(crate) fn trusted_until(sent: Instant, lease: Duration, until: Option<Instant>) -> Instant {
    let deadline = deadline(sent, lease);
    until.map_or(deadline, |until| until.min(deadline))
}

/// For how long the store allows trust after a request that was sent at `sent`, if that is less
/// than the lease is trusted for. Then the rest has to be asked for, also of a fixed lease.
pub(crate) fn allowed(sent: Instant, lease: Duration, until: Option<Instant>) -> Option<Duration> {
    let until = until.filter(|until| *until < deadline(sent, lease))?;
    Some(until.saturating_duration_since(sent))
}

/// The end of the trust in a handed-over hold, or `None` if it must be confirmed first. `confirmed`
/// is when a request was sent that the store has answered. The grant came after that request on the
/// same link, so its lease began later.
pub(crate) fn handed_over_deadline(
    now: Instant,
    confirmed: Instant,
    lease: Duration,
) -> Option<Instant> {
    until_if_enough_left(now, deadline(confirmed, first_lease(lease)), lease)
}

/// The end of the trust in a handed-over hold, or `None` if so little is left that it must be
/// confirmed first.
pub(crate) fn until_if_enough_left(
    now: Instant,
    until: Instant,
    lease: Duration,
) -> Option<Instant> {
    (until > now + first_lease(lease) / 4).then_some(until)
}

/// When to ask for the rest of the lease of a handed-over hold that can be trusted until `until`.
/// Most bodies have ended before.
pub(crate) fn handed_over_renewal(now: Instant, until: Instant) -> Instant {
    now + until.saturating_duration_since(now) / 8
}

/// When to renew a hold that was handed off inside the process and can be trusted until `until`.
/// `None` if the store must be asked first: too little is left, or more than the lease. A `fresh`
/// hold was handed over by the store a moment ago: the rest of its lease was not asked for yet.
/// `allowed` is what the store allowed when it was last asked; see [`allowed`].
pub(crate) fn handed_off_renewal(
    now: Instant,
    until: Instant,
    fresh: bool,
    allowed: Option<Duration>,
    options: &Resolved,
) -> Option<Option<Instant>> {
    let (left, lease) = (until.saturating_duration_since(now), options.lease);
    let whole = trusted(lease);
    let short = allowed.filter(|allowed| *allowed < whole);
    let renews = options.renew || short.is_some();
    let enough = if fresh {
        whole.min(first_lease(lease)) / 2
    } else if renews {
        short.unwrap_or(whole) / 2
    } else {
        // A lease that is not renewed is all that the body has.
        whole - lease / 100
    };
    if left < enough || left > whole {
        return None;
    }
    let missing = short.unwrap_or(whole).saturating_sub(left);
    let soon = handed_over_renewal(now, until);
    Some(if renews {
        let at = now + (short.unwrap_or(lease) / 3).saturating_sub(missing);
        Some(if fresh { at.max(soon) } else { at })
    } else {
        (missing > lease / 100).then_some(soon)
    })
}

/// How long a request waits for the hold of another task of its process before it asks the store.
pub(crate) fn handoff_wait_end(now: Instant, budget: &Budget, limits: &Defaults) -> Instant {
    let left = budget
        .end()
        .map(|ends| ends.saturating_duration_since(now) / 4);
    now + left.map_or(limits.local_tenure, |left| left.min(limits.local_tenure))
}

/// When to renew a new hold for the first time. `None`: it is not renewed. See [`renewal_at`].
pub(crate) fn first_renewal(
    sent: Instant,
    options: &Resolved,
    until: Option<Instant>,
) -> Option<Instant> {
    let renews = options.renew;
    renews.then(|| renewal_at(sent, options.lease, until))
}

/// Whether a hold that can be trusted until `deadline` is trusted to its end. It was asked for with
/// this lease, a part of which is never trusted.
pub(crate) fn is_to_end(deadline: Instant, asked: Duration, ends: Option<Instant>) -> bool {
    let slack = drift_margin(asked) + Duration::from_millis(15);
    ends.is_some_and(|ends| deadline + slack >= ends)
}

/// When to ask for the rest of a fixed lease that the store allows to trust until `deadline`.
pub(crate) fn rest_at(now: Instant, deadline: Instant) -> Instant {
    now + deadline.saturating_duration_since(now) / 3
}

/// When to renew a hold whose lease was set by a command sent at `sent`: after a third of it. If
/// the store allows trust only until an earlier moment, `until`, after a third of the time to that.
pub(crate) fn renewal_at(sent: Instant, lease: Duration, until: Option<Instant>) -> Instant {
    let allowed = until.map(|until| until.saturating_duration_since(sent));
    sent + allowed.map_or(lease, |allowed| allowed.min(lease)) / 3
}

/// When to repeat a renewal of a hold after its `failures`th failure in a row: before its deadline,
/// while there is time.
pub(crate) fn renewal_retry_at(
    now: Instant,
    lease: Duration,
    deadline: Instant,
    failures: u32,
) -> Instant {
    now + (lease / 20)
        .min(backoff(failures))
        .min((deadline.saturating_duration_since(now) / 2).max(BACKOFF_MIN))
        .max(Duration::from_millis(1))
}

/// By when a renewal must be answered: early enough for a second try before the first deadline. If
/// there is no time for two, one try gets all of it.
pub(crate) fn renewal_by(
    sent: Instant,
    deadlines: impl Iterator<Item = Instant>,
    command_timeout: Duration,
) -> Instant {
    let left = |deadline: Instant| deadline.saturating_duration_since(sent);
    let left = deadlines.map(left).min().unwrap_or(3 * command_timeout);
    let usual = command_timeout / 3;
    let share = if left < 2 * usual {
        left.max(Duration::from_millis(5))
    } else {
        (left / 3).max(usual)
    };
    sent + share.min(command_timeout)
}

/// The lease that a renewal asks for: cut where the hold ends. Of a fixed lease, the rest. `None`
/// if too little is left to ask for.
pub(crate) fn renewal_lease(
    now: Instant,
    lease: Duration,
    renew: bool,
    ends: Option<Instant>,
) -> Option<Duration> {
    let Some(ends) = ends else { return Some(lease) };
    let left = ends.saturating_duration_since(now);
    // It may have been extended by more than it had.
    let asked = if renew { lease.min(left) } else { left };
    (left >= MIN_LEASE).then_some(asked)
}

/// How long until an undo is repeated while its acquire may still arrive: soon at first, then ever
/// more seldom.
pub(crate) fn undo_pause(tries: u32, lease: Duration) -> Duration {
    BACKOFF_MIN
        .saturating_mul(1 << tries.saturating_sub(1).min(16))
        .min(lease / 10)
        .max(BACKOFF_MIN)
}

/// The end of `max_hold`, or of a fixed lease, of a hold that counts from `since`.
pub(crate) fn hold_ends(since: Instant, options: &Resolved) -> Option<Instant> {
    let lasts = match options.renew {
        true => options.max_hold,
        false => Some(options.lease),
    };
    lasts.map(|lasts| since + lasts)
}

/// Failures in a row of something that is repeated until it succeeds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retry {
    failures: u32,
}

impl Retry {
    /// How many there were.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Counts a failure. When to try again.
    pub(crate) fn again_at(&mut self, now: Instant) -> Instant {
        self.failures += 1;
        now + backoff(self.failures)
    }

    /// Counts a failure and waits for the next try. False, at once, if that would not come before
    /// `end`.
    pub(crate) async fn pause(&mut self, clock: &Clock, ends: Instant) -> bool {
        let again = self.again_at(clock.now());
        let has_time = again < ends;
        if has_time {
            clock.sleep_until(again).await;
        }
        has_time
    }
}

#[cfg(test)]
mod tests;
