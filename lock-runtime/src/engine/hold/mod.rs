//! One hold: how long it can be trusted, and the store's commands for it.

mod change;
pub(super) mod loss;
pub(crate) mod part;
pub(super) mod release;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lock_store::timing::drift_margin;
use lock_store::{Acquire, Claim, ClientId, Clock, Instant, LockKey, Mutex, Permits};
use tokio::sync::Notify;

use self::part::Part;
use super::late_acquire::LateAcquire;
use super::local_queue::Tenure;
use super::timing;
use crate::config::Resolved;
use crate::error::LostReason;
use crate::observe::{GrantedBy, LockKind};
use crate::one_or_more::OneOrMore;

/// A lock that the store granted to this process, or several locks that are held, renewed, lost and
/// released together.
#[derive(Debug)]
pub(crate) struct Hold {
    id: u64,
    parts: OneOrMore<Part>,
    pub(crate) since: Instant,
    pub(crate) lease: Duration,
    pub(crate) renew: bool,
    /// Whom it came from.
    pub(crate) how: GrantedBy,
    /// What it was granted as. A writer may have become a reader since.
    pub(crate) kind: LockKind,
    /// Earlier commands of this request with an unknown outcome, which may yet be carried out.
    pub(crate) pending_outcomes: Vec<(LateAcquire, Acquire)>,
    clock: Clock,
    state: Mutex<HoldState>,
    /// Wakes the tasks that wait for the loss; there if any does.
    lost: OnceLock<Arc<Notify>>,
}

#[derive(Debug)]
struct HoldState {
    deadline: Instant,
    /// The lease that this deadline is of.
    asked: Duration,
    /// The end of `max_hold`, or of a fixed lease.
    ends: Option<Instant>,
    /// The store keeps it at most until then: by the longest lease ever asked for, answered or not.
    stored_until: Instant,
    lost: Option<LostReason>,
    /// The loss was counted and told.
    told_lost: bool,
    /// A long hold was logged.
    said_long: bool,
    /// A renewal was asked for, and no answer has come yet.
    renewing: bool,
    /// The end of `hold_at_least`.
    keep_until: Option<Instant>,
    /// When the watchdog acts on it next.
    watched_at: Option<Instant>,
    released: bool,
    /// How much of its key it has; `None` is all of it.
    permits: Option<Permits>,
    /// What may be handed off to another task of this process.
    tenure: Option<Box<Tenure>>,
}

#[derive(Debug)]
pub(crate) struct Grant {
    /// Tells the hold from each other one of its client, also from those that it was made of.
    pub(crate) id: u64,
    pub(crate) deadline: Instant,
    pub(crate) ends: Option<Instant>,
    pub(crate) pending_outcomes: Vec<(LateAcquire, Acquire)>,
    pub(crate) tenure: Option<Box<Tenure>>,
    pub(crate) how: GrantedBy,
}

/// The hold was released before.
#[derive(Debug)]
pub(super) struct AlreadyReleased;

impl HoldState {
    fn is_to_end(&self) -> bool {
        timing::is_to_end(self.deadline, self.asked, self.ends)
    }
}

impl Hold {
    pub(crate) fn new(
        parts: OneOrMore<Part>,
        now: Instant,
        options: &Resolved,
        grant: Grant,
        clock: Clock,
    ) -> Self {
        let keep = options.kept_always();
        let keep_until = (!keep.is_zero()).then(|| now + keep);
        Self {
            id: grant.id,
            parts,
            since: now,
            lease: options.lease,
            renew: options.renew,
            how: grant.how,
            kind: LockKind::of(options.permits),
            pending_outcomes: grant.pending_outcomes,
            clock,
            state: Mutex::new(HoldState {
                deadline: grant.deadline,
                asked: options.lease,
                ends: grant.ends,
                stored_until: grant.deadline + drift_margin(options.lease),
                lost: None,
                // The end of a part is nobody's news.
                told_lost: options.is_part,
                said_long: options.leads,
                renewing: false,
                keep_until,
                watched_at: None,
                released: false,
                permits: options.permits,
                tenure: grant.tenure,
            }),
            lost: OnceLock::new(),
        }
    }

    /// The key that messages name.
    pub(crate) fn key(&self) -> &LockKey {
        &self.parts()[0].key
    }

    pub(crate) fn parts(&self) -> &[Part] {
        self.parts.as_slice()
    }

    /// Tells it from every other hold of its client.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Which of its parts is of this client and key.
    pub(crate) fn find(&self, client: ClientId, key: &LockKey) -> Option<usize> {
        self.parts()
            .iter()
            .position(|part| part.owner.client == client && part.key == *key)
    }

    pub(crate) fn is_of(&self, client: ClientId) -> bool {
        self.parts()[0].owner.client == client
    }

    pub(crate) fn permits(&self) -> Option<Permits> {
        self.state.lock().permits
    }

    pub(crate) fn claim(&self, part: &Part) -> Claim {
        Claim::new(part.key.clone(), part.owner, self.permits())
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.state.lock().deadline
    }

    /// The lease that a renewal at this time asks for. `None` if the hold ends.
    pub(super) fn renewal_lease(&self, now: Instant) -> Option<Duration> {
        let ends = self.state.lock().ends;
        timing::renewal_lease(now, self.lease, self.renew, ends)
    }

    /// When to ask for the rest of a fixed lease that can't be trusted to its end yet.
    pub(super) fn rest_at(&self, now: Instant) -> Option<Instant> {
        let state = self.state.lock();
        let is_short = !self.renew && !state.is_to_end();
        is_short.then(|| timing::rest_at(now, state.deadline))
    }

    /// The store keeps it at most until then.
    pub(super) fn stored_until(&self) -> Instant {
        self.state.lock().stored_until
    }

    /// How long it can still be trusted; zero when lost or released.
    pub(crate) fn remaining(&self) -> Duration {
        if self.loss().is_some() {
            return Duration::ZERO;
        }
        let state = self.state.lock();
        if state.released {
            Duration::ZERO
        } else {
            state.deadline.saturating_duration_since(self.clock.now())
        }
    }

    /// Whether its guard would say that it is held; changes nothing.
    #[cfg(feature = "__internals")]
    pub(crate) fn is_trusted(&self) -> bool {
        let state = self.state.lock();
        state.lost.is_none() && !state.released && self.clock.now() < state.deadline
    }

    /// The next of the fencing tokens that were reserved when the process got the key.
    pub(super) fn reserved_token(&self) -> Option<u64> {
        self.state.lock().tenure.as_mut()?.next_token()
    }

    /// Whether it was released.
    pub(crate) fn is_released(&self) -> bool {
        self.state.lock().released
    }

    /// How long the key stays taken after a release at this time.
    pub(crate) fn keep(&self, now: Instant) -> Duration {
        let until = self.state.lock().keep_until;
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// The key is to stay taken for at least this long from then on: for a nested request, or
    /// after a success.
    pub(crate) fn keep_at_least(&self, since: Instant, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        let mut state = self.state.lock();
        state.keep_until = state.keep_until.max(Some(since + keep));
    }

    /// Notes when the watchdog acts on it next, unless it was released. Returns when the watchdog
    /// would have acted before.
    pub(super) fn watch(&self, at: Instant) -> Result<Option<Instant>, AlreadyReleased> {
        let mut state = self.state.lock();
        if state.released {
            return Err(AlreadyReleased);
        }
        Ok(state.watched_at.replace(at))
    }

    /// When the watchdog would have acted on it next.
    pub(super) fn unwatch(&self) -> Option<Instant> {
        self.state.lock().watched_at.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HoldAfter, Wait};
    use crate::engine::fencing::window::TokenWindow;
    use crate::engine::local_queue::LocalQueues;
    use lock_store::Owner;

    fn hold() -> Hold {
        hold_with(None)
    }

    fn hold_with(tenure: Option<Box<Tenure>>) -> Hold {
        let lease = Duration::from_secs(30);
        let options = Resolved {
            lease,
            renew: true,
            max_hold: None,
            wait: Wait::Forever,
            fair: false,
            permits: None,
            reentrant: true,
            hold_at_least: Duration::ZERO,
            hold_after: HoldAfter::Always,
            fenced: false,
            leads: false,
            is_part: false,
        };
        let owner = Owner::new(ClientId(1), 1);
        let grant = Grant {
            id: 1,
            deadline: Instant::now() + lease,
            ends: None,
            pending_outcomes: Vec::new(),
            tenure,
            how: GrantedBy::Store,
        };
        let part = Part::new("k".into(), owner, None);
        let clock = Clock::new(tokio::runtime::Handle::current());
        Hold::new(OneOrMore::One(part), Instant::now(), &options, grant, clock)
    }

    #[tokio::test]
    async fn a_hold_that_was_lost_or_released_becomes_no_part_of_another() {
        let (lost, released) = (hold(), hold());
        lost.lose(LostReason::Shutdown);
        assert!(!lost.become_part());
        assert!(released.end(Instant::now()).is_some());
        assert!(!released.become_part());
    }

    /// Also if nobody has noticed yet that it is over.
    #[tokio::test]
    async fn a_hold_is_handed_off_before_its_deadline_only() {
        let (queues, nano) = (LocalQueues::default(), Duration::from_nanos(1));
        let handed_off = |when: fn(Instant, Duration) -> Instant| {
            let marker = queues.marker(&"k".into());
            let owner = Owner::new(ClientId(1), 1);
            let tokens = TokenWindow::new(None, 0);
            let tenure = Tenure::new(owner, Instant::now(), None, tokens, marker);
            let hold = hold_with(Some(tenure));
            let ending = hold.end(when(hold.deadline(), nano));
            ending.map(|ending| (ending.lost, ending.handoff.is_some()))
        };
        assert_eq!(
            handed_off(|deadline, nano| deadline - nano),
            Some((None, true))
        );
        assert_eq!(handed_off(|deadline, _| deadline), Some((None, false)));
        assert_eq!(
            handed_off(|deadline, nano| deadline + nano),
            Some((None, false))
        );
    }

    /// A store that allows less trust than before cuts an extension, and does not end it.
    #[tokio::test]
    async fn what_is_said_of_a_renewal_counts_for_an_extension_before_it_too() {
        let (hold, now) = (hold(), Instant::now());
        let seconds = Duration::from_secs;
        hold.prolong(now, seconds(600), None);
        let extended = hold.deadline();
        assert_eq!(extended, timing::deadline(now, seconds(600)));
        hold.prolong(now, seconds(30), Some(extended + seconds(1)));
        assert_eq!(hold.deadline(), extended);
        hold.prolong(now, seconds(30), Some(now + seconds(100)));
        assert_eq!(hold.deadline(), now + seconds(100));
        hold.prolong(now, seconds(30), Some(now + seconds(10)));
        assert_eq!(hold.deadline(), now + seconds(10));
    }

    /// Also one that was extended by much more than it had.
    #[tokio::test]
    async fn a_fixed_lease_is_at_its_end_but_for_what_is_never_trusted_of_what_was_asked() {
        let hold = Hold {
            renew: false,
            ..hold()
        };
        let (now, lease) = (Instant::now(), Duration::from_secs(600));
        hold.end_at_least(now + lease);
        assert!(hold.rest_at(now).is_some());
        hold.prolong(now, lease, None);
        assert_eq!(hold.rest_at(now), None);
    }

    #[tokio::test]
    async fn a_hold_that_became_part_of_another_is_neither_lost_nor_released_any_more() {
        let hold = hold();
        assert!(hold.become_part());
        hold.lose(LostReason::Shutdown);
        assert_eq!(hold.loss(), None);
        assert!(hold.is_released() && hold.end(Instant::now()).is_none() && !hold.become_part());
    }
}
