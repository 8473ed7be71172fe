//! One hold: until when it can be trusted, and whether it was lost.

mod ending;
mod part;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lock_store::{Acquire, Claim, ClientId, Clock, LockKey, Release, Renewal, Share};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::turn::Turn;
use crate::config::Resolved;
use crate::error::{LockError, LostReason};

pub(super) use self::ending::{Ended, Ending};
pub(crate) use self::part::{Late, Part, Parts};

/// A lock that the store granted to this process, or several that are held, renewed, lost and released together.
#[derive(Debug)]
pub(crate) struct Hold {
    id: u64,
    parts: Parts,
    pub(crate) lease: Duration,
    pub(crate) renew: bool,
    /// The end of `max_hold`.
    pub(crate) ends: Option<Instant>,
    /// Earlier commands of this request whose outcome is not known, and which may yet be carried out.
    pub(crate) late: Vec<(Late, Acquire)>,
    clock: Clock,
    state: Mutex<State>,
    /// Wakes everyone who waits for the loss; there if anybody does.
    lost: OnceLock<Arc<Notify>>,
}

#[derive(Debug)]
struct State {
    deadline: Instant,
    lost: Option<LostReason>,
    /// The end of `hold_at_least`.
    keep_until: Option<Instant>,
    /// When the watchdog acts on it next.
    watched_at: Option<Instant>,
    released: bool,
    /// How much of its key it has; `None` is all of it.
    share: Option<Share>,
    /// What may be passed on to another task of this process.
    turn: Option<Box<Turn>>,
}

/// What a grant was for.
#[derive(Debug)]
pub(crate) struct Grant {
    /// What tells the hold from every other one of its client, those that it was made of included.
    pub(crate) id: u64,
    pub(crate) deadline: Instant,
    pub(crate) ends: Option<Instant>,
    pub(crate) late: Vec<(Late, Acquire)>,
    pub(crate) turn: Option<Box<Turn>>,
}

impl Hold {
    pub(crate) fn new(
        parts: Parts,
        now: Instant,
        options: &Resolved,
        grant: Grant,
        clock: Clock,
    ) -> Self {
        let keep = options.hold_at_least;
        let keep_until = (!keep.is_zero()).then(|| now + keep);
        Self {
            id: grant.id,
            parts,
            lease: options.lease,
            renew: options.renew,
            ends: grant.ends,
            late: grant.late,
            clock,
            state: Mutex::new(State {
                deadline: grant.deadline,
                lost: None,
                keep_until,
                watched_at: None,
                released: false,
                share: options.share,
                turn: grant.turn,
            }),
            lost: OnceLock::new(),
        }
    }

    /// The key that messages name.
    pub(crate) fn key(&self) -> &LockKey {
        &self.parts()[0].key
    }

    pub(crate) fn parts(&self) -> &[Part] {
        match &self.parts {
            Parts::One(part) => std::slice::from_ref(part),
            Parts::Several(parts) => parts,
        }
    }

    /// What tells it from every other hold of its client.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Which of its parts is of this client and key.
    pub(crate) fn find(&self, client: ClientId, key: &LockKey) -> Option<usize> {
        self.parts()
            .iter()
            .position(|part| part.owner.client == client && part.key == *key)
    }

    /// How much of its key it has; `None` is all of it.
    pub(crate) fn share(&self) -> Option<Share> {
        self.state().share
    }

    pub(crate) fn set_share(&self, share: Share) {
        self.state().share = Some(share);
    }

    pub(crate) fn claim(&self, part: &Part) -> Claim {
        Claim {
            key: part.key.clone(),
            owner: part.owner,
            share: self.share(),
        }
    }

    /// What to ask the store for. From then on it may have the hold for as long, whatever is heard of it.
    pub(crate) fn renewals(&self, lease: Duration) -> Vec<Renewal> {
        if let Some(turn) = &mut self.state().turn {
            turn.lasts(self.clock.now() + lease);
        }
        let renewal = |part| Renewal {
            claim: self.claim(part),
            lease,
        };
        self.parts().iter().map(renewal).collect()
    }

    pub(crate) fn releases(&self, keep: Duration) -> Vec<Release> {
        let share = self.share();
        let release = |part: &Part| Release {
            claim: Claim {
                key: part.key.clone(),
                owner: part.owner,
                share,
            },
            keep,
        };
        self.parts().iter().map(release).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason of the loss, if it is lost: also when this is the first to notice that the deadline has passed.
    pub(crate) fn loss(&self) -> Option<LostReason> {
        let now = self.clock.now();
        let mut state = self.state();
        if state.lost.is_none() && !state.released && now >= state.deadline {
            state.lost = Some(self.expiry(state.deadline));
            let (reason, turn) = (state.lost, state.turn.take());
            drop(state);
            drop(turn);
            if let Some(reason) = reason {
                self.tell(reason);
            }
            return reason;
        }
        state.lost
    }

    /// How a hold that ran into its deadline was lost.
    fn expiry(&self, deadline: Instant) -> LostReason {
        // The last renewal before the end of `max_hold` is cut to it, less what is not trusted of a lease.
        let slack = self.lease / 50 + Duration::from_millis(15);
        match self.ends {
            Some(ends) if deadline + slack >= ends => LostReason::MaxHold,
            _ => LostReason::Expired,
        }
    }

    /// Says that it is lost. Never taken back.
    pub(crate) fn lose(&self, reason: LostReason) {
        let mut state = self.state();
        if state.lost.is_none() && !state.released {
            state.lost = Some(reason);
            let turn = state.turn.take();
            drop(state);
            drop(turn);
            self.tell(reason);
        }
    }

    fn tell(&self, reason: LostReason) {
        tracing::warn!(key = %self.key().shortened(), %reason, "a lock was lost");
        if let Some(lost) = self.lost.get() {
            lost.notify_waiters();
        }
    }

    /// Ends when it is lost. Whoever asks [`loss`](Self::loss) after this misses nothing.
    pub(crate) fn notified(&self) -> OwnedNotified {
        let lost = self.lost.get_or_init(Arc::default);
        Arc::clone(lost).notified_owned()
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.state().deadline
    }

    /// How long it can still be trusted; zero when lost or released.
    pub(crate) fn remaining(&self) -> Duration {
        if self.loss().is_some() {
            return Duration::ZERO;
        }
        let state = self.state();
        if state.released {
            Duration::ZERO
        } else {
            state.deadline.saturating_duration_since(self.clock.now())
        }
    }

    /// Whether its guard would say that it is held; changes nothing.
    #[cfg(feature = "__internals")]
    pub(crate) fn is_trusted(&self) -> bool {
        let state = self.state();
        state.lost.is_none() && !state.released && self.clock.now() < state.deadline
    }

    /// Moves the deadline after a renewal. A hold that was lost meanwhile stays lost.
    pub(crate) fn prolong(&self, deadline: Instant) {
        if self.loss().is_none() {
            let mut state = self.state();
            state.deadline = state.deadline.max(deadline);
        }
    }

    /// Marks the end of a hold whose key another hold of this client has from now on. False if it was lost or released
    /// before.
    pub(crate) fn pass_on(&self) -> bool {
        let mut state = self.state();
        let ended = std::mem::replace(&mut state.released, true);
        !ended && state.lost.is_none()
    }

    /// The next of the fencing tokens that were reserved when the process got the key.
    pub(super) fn reserved_token(&self) -> Option<u64> {
        self.state().turn.as_mut()?.next_token()
    }

    /// Whether it was released.
    pub(crate) fn ended(&self) -> bool {
        self.state().released
    }

    /// How long the key stays taken after a release at this time.
    pub(crate) fn keep(&self, now: Instant) -> Duration {
        let until = self.state().keep_until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Takes note of when the watchdog acts on it next, unless it was released, and gives back when it would have.
    pub(super) fn watch(&self, at: Instant) -> Result<Option<Instant>, Ended> {
        let mut state = self.state();
        if state.released {
            return Err(Ended);
        }
        Ok(state.watched_at.replace(at))
    }

    /// When the watchdog would have acted on it next.
    pub(super) fn unwatch(&self) -> Option<Instant> {
        self.state().watched_at.take()
    }

    /// A nested request asked to keep the key for at least this long from now.
    pub(crate) fn keep_at_least(&self, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        let until = self.clock.now() + keep;
        let mut state = self.state();
        state.keep_until = state.keep_until.max(Some(until));
    }

    pub(crate) fn lost_error(&self, reason: LostReason) -> LockError {
        LockError::Lost {
            key: self.key().clone(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Wait;
    use lock_store::Owner;

    fn hold() -> Hold {
        let lease = Duration::from_secs(30);
        let options = Resolved {
            lease,
            renew: true,
            max_hold: None,
            wait: Wait::Forever,
            fair: false,
            share: None,
            reentrant: true,
            hold_at_least: Duration::ZERO,
            fenced: false,
        };
        let owner = Owner {
            client: ClientId(1),
            request: 1,
        };
        let grant = Grant {
            id: 1,
            deadline: Instant::now() + lease,
            ends: None,
            late: Vec::new(),
            turn: None,
        };
        let part = Part::new("k".into(), owner, None);
        let clock = Clock::new(tokio::runtime::Handle::current());
        Hold::new(Parts::One(part), Instant::now(), &options, grant, clock)
    }

    #[tokio::test]
    async fn a_hold_that_was_lost_or_released_is_not_passed_on() {
        let (lost, released) = (hold(), hold());
        lost.lose(LostReason::Shutdown);
        assert!(!lost.pass_on());
        assert!(released.end(Instant::now()).is_some());
        assert!(!released.pass_on());
    }

    #[tokio::test]
    async fn a_hold_that_was_passed_on_is_neither_lost_nor_released_any_more() {
        let hold = hold();
        assert!(hold.pass_on());
        hold.lose(LostReason::Shutdown);
        assert_eq!(hold.loss(), None);
        assert!(hold.ended() && hold.end(Instant::now()).is_none() && !hold.pass_on());
    }
}
