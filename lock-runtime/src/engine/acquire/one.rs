//! The way to one key, as a machine whose states have names.
//!
//! A request enters the local queue behind the earlier requests of this process. When it is its
//! turn it asks the store. If the key is taken it stands in the store's queue, behind those of
//! other processes, until it is handed the lock or asks again. Each way from one state to the next
//! is a function.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lock_store::timing::BACKOFF_MIN;
use lock_store::{Instant, Queue, StoreError};

use super::command::Step;
use super::foreign::ForeignHolder;
use super::giving_up::Heard;
use super::long_wait::LongWait;
use super::state::State;
use super::task::AcquireTask;
use crate::engine::Engine;
use crate::engine::errors::unavailable;
use crate::engine::fencing::window;
use crate::engine::hold::Hold;
use crate::engine::local_queue::{Doing, Handoff, Inbox, QueuedRequest, Waiter};
use crate::engine::timing::{self, Retry};
use crate::error::LockError;
use crate::mends::Mend;
use crate::observe::{LockKind, Subject, What};

/// A request in the local queue. A handoff that it did not use goes to the next.
struct Queued<'e> {
    engine: &'e Engine,
    waiter: Waiter,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Some(handoff) = self.waiter.leave() {
            self.engine.pass_back(handoff);
        }
    }
}

/// A request that waits, and what it has learned.
struct Waiting<'e> {
    queued: Queued<'e>,
    state: State,
    /// The first command may be the plain one.
    barges: bool,
    was_first: bool,
    asked: bool,
    /// The store has said that the key is taken.
    was_told_busy: bool,
    foreign: ForeignHolder,
    warning: LongWait,
    /// So many grants could not be used.
    unusable_grants: u32,
    /// Why the last one could not, if that was the last answer.
    unusable: Option<StoreError>,
    retry: Retry,
}

impl<'e> AcquireTask<'e> {
    /// Waits for the key, as long as the budget says.
    pub(super) async fn wait(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let engine = self.engine;
        let mut waiting = self.enters(now);
        loop {
            if engine.is_closing() {
                return Err(LockError::Shutdown);
            }
            let inbox = waiting.queued.waiter.signal.take();
            if let Some(hold) = self.hears(&mut waiting, inbox, &mut now) {
                return Ok(hold);
            }
            if let Some(hold) = self.moves_up(&mut waiting, &mut now) {
                return Ok(hold);
            }
            let waiter = &waiting.queued.waiter;
            waiting
                .warning
                .tells(engine, now, &self.request.claim.key, waiter);
            let (waiter, too_short) = (&waiting.queued.waiter, waiting.lease_is_too_short());
            if let Some(error) = self.loses_patience(waiter, now, too_short) {
                return Err(error);
            }
            if let State::Asks = waiting.state
                && !(waiting.asked && self.budget.ends().is_some_and(|ends| now >= ends))
            {
                self.prepares(&mut waiting);
                if waiting.was_told_busy {
                    // It may stop being polled before it sleeps, and have a place by then.
                    let queue = waiting.queued.waiter.queue();
                    engine.local_queues.patrols(queue);
                }
                let step = self.send(Some(&waiting.queued.waiter), now).await?;
                if let Some(hold) = self.was_answered(&mut waiting, step) {
                    return Ok(hold);
                }
                now = engine.clock.now();
                continue;
            }
            let waiter = &waiting.queued.waiter;
            let heard = Heard {
                asked: waiting.asked,
                busy: waiting.was_told_busy,
            };
            if let Some(error) = self.gives_up(waiter, heard).await {
                let key = &self.request.claim.key;
                return Err(match waiting.unusable.take() {
                    None => error,
                    Some(unusable) => unavailable(Some(key), unusable),
                });
            }
            let wake = self.wake_at(waiter, waiting.asks_at(waiter.standing().is_first));
            let wake = waiting.warning.wake_at(wake);
            self.tells_that_it_waits();
            waiter.signal.doing(Doing::Sleeps(wake));
            engine.local_queues.patrols(waiter.queue());
            let _ = engine.clock.by(wake, waiter.signal.notified()).await;
            now = engine.clock.now();
        }
    }

    /// Joins the local queue. The requests of a fair lock ask the store at once, wherever they
    /// stand.
    fn enters(&self, now: Instant) -> Waiting<'e> {
        let (queued, is_first) = self.joins(now);
        let fair = self.options.fair;
        Waiting {
            queued,
            state: State::first(fair),
            barges: !fair && is_first,
            was_first: is_first,
            asked: false,
            was_told_busy: false,
            foreign: ForeignHolder::default(),
            warning: LongWait::new(self.budget.started, &self.engine.defaults),
            unusable_grants: 0,
            unusable: None,
            retry: Retry::default(),
        }
    }

    fn joins(&self, now: Instant) -> (Queued<'e>, bool) {
        let (engine, claim) = (self.engine, &self.request.claim);
        // A request that stands in the store's queue gets no handoff.
        let willing = !self.options.fair && engine.defaults.local_handoffs > 0;
        let request = QueuedRequest {
            owner: claim.owner,
            permits: claim.permits,
            lease: self.request.lease,
            since: self.budget.started,
        };
        let doing = Doing::Asks(now + engine.defaults.command_timeout);
        let (waiter, is_first) = engine
            .local_queues
            .join(&claim.key, request, willing, doing);
        (Queued { engine, waiter }, is_first)
    }

    fn tells_that_it_waits(&self) {
        if self.was_queued.swap(true, Ordering::Relaxed) {
            return;
        }
        let claim = &self.request.claim;
        let subject = Subject::new(&claim.key, 0, LockKind::of(claim.permits));
        self.engine
            .observed
            .events
            .tell(Some(subject), What::Queued);
    }

    /// What has arrived changes where it stands. A hold, if it got one.
    fn hears(
        &mut self,
        waiting: &mut Waiting<'e>,
        inbox: Inbox,
        now: &mut Instant,
    ) -> Option<Arc<Hold>> {
        if inbox.passed_over {
            self.was_passed_over(waiting);
            *now = self.engine.clock.now();
            return None;
        }
        if let Some(handoff) = inbox.handoff {
            return self.was_passed_on_to(waiting, handoff, now);
        }
        if let Some(granted) = inbox.granted {
            let hold = self.handed_over(&waiting.queued.waiter, granted);
            // Only the store can explain a grant that can't be used as it is.
            waiting.state = State::Asks;
            *now = self.engine.clock.now();
            return hold;
        }
        if inbox.recheck {
            let is_first = || waiting.queued.waiter.standing().is_first;
            match &mut waiting.state {
                State::InLocalQueue { handoff_until } if is_first() => *handoff_until = Some(*now),
                State::InLocalQueue { .. } | State::Asks => {}
                State::InStoreQueue { .. } => waiting.state = State::Asks,
                // The store has become another, which need not be well either.
                State::BacksOff {
                    failed_at,
                    again_at,
                } => *again_at = (*again_at).min(*failed_at + BACKOFF_MIN),
            }
        }
        None
    }

    /// It goes on with the hold of another task, or asks the store to end that one's tenure.
    fn was_passed_on_to(
        &mut self,
        waiting: &mut Waiting<'e>,
        handoff: Handoff,
        now: &mut Instant,
    ) -> Option<Arc<Hold>> {
        match self.take_over(handoff) {
            Ok(hold) => return Some(hold),
            Err(handoff) => *now = self.goes_on_from(handoff),
        }
        waiting.barges = false;
        waiting.state = State::Asks;
        None
    }

    /// Nobody polled it: what it had was given to others, and it goes on from the end.
    fn was_passed_over(&mut self, waiting: &mut Waiting<'e>) {
        self.starts_again();
        (waiting.queued, _) = self.joins(self.engine.clock.now());
        waiting.state = State::first(self.options.fair);
        (waiting.unusable_grants, waiting.unusable) = (0, None);
        (waiting.barges, waiting.was_first) = (false, false);
    }

    /// Time and those who left may have made it its turn. A hold, if one was passed on meanwhile.
    fn moves_up(&mut self, waiting: &mut Waiting<'e>, now: &mut Instant) -> Option<Arc<Hold>> {
        let standing = waiting.queued.waiter.standing();
        let became_first = standing.is_first && !waiting.was_first;
        waiting.was_first |= standing.is_first;
        match &mut waiting.state {
            State::InLocalQueue { handoff_until } if standing.is_first => {
                if standing.may_get_handoff {
                    // Another task of this process will pass its hold on, if it ends soon.
                    waiting.barges = false;
                    let until = *handoff_until.get_or_insert_with(|| {
                        timing::awaits_handoff_until(*now, &self.budget, &self.engine.defaults)
                    });
                    if *now < until {
                        return None;
                    }
                }
                if let Some(handoff) = waiting.queued.waiter.asks_the_store() {
                    return self.was_passed_on_to(waiting, handoff, now);
                }
                waiting.state = State::Asks;
            }
            State::InStoreQueue { recheck_at } => {
                if became_first && self.follows_a_grant(&waiting.queued.waiter) {
                    *recheck_at = *now;
                } else if became_first {
                    // The one before has rechecked until now. Most likely it has just got what this
                    // one waits for. But the store must hear of this client as often as before.
                    let looked = waiting.queued.waiter.liveness().looked_at();
                    let next = looked.map(|at| timing::next_recheck(at, None));
                    *recheck_at = next.unwrap_or(*recheck_at).max(*recheck_at);
                }
                if standing.is_first && *now >= *recheck_at {
                    waiting.state = State::Asks;
                }
            }
            State::BacksOff { again_at, .. } if *now >= *again_at => waiting.state = State::Asks,
            State::InLocalQueue { .. } | State::BacksOff { .. } | State::Asks => {}
        }
        None
    }

    /// Whether one that stood before it was granted a share when it asked, later than this one has
    /// asked. What freed that share told nobody, or its messages were lost: this one may have its
    /// own by now.
    fn follows_a_grant(&self, waiter: &Waiter) -> bool {
        let asked = self.confirmed.map(|(sent, _)| sent);
        self.request.claim.permits.is_some()
            && waiter.liveness().granted_at() > asked
            && !self.lacks(Mend::TurnOfTheNext)
    }

    /// Makes the next command what it must be.
    fn prepares(&mut self, waiting: &mut Waiting<'e>) {
        let waiter = &waiting.queued.waiter;
        let has_window = self.engine.capabilities.token_window;
        if !waiting.asked && self.options.fenced && has_window && waiter.has_others_behind() {
            self.request.tokens = window::for_handoffs(&self.engine.defaults);
        }
        if !waiting.barges {
            self.join_queue(&waiter.signal);
        }
        (waiting.barges, waiting.asked) = (false, true);
    }

    /// What the store has answered decides where it stands. A hold, if the store granted one.
    fn was_answered(&mut self, waiting: &mut Waiting<'e>, step: Step) -> Option<Arc<Hold>> {
        let now = || self.engine.clock.now();
        waiting.unusable = None;
        waiting.state = match step {
            Step::Held(hold) => return Some(hold),
            // Its inbox says so too.
            Step::PassedOver => return None,
            Step::Busy { recheck_at, holder } => {
                let owner = self.request.claim.owner;
                let foreign = waiting.foreign.recheck_at(holder, owner, now());
                let recheck_at = foreign.unwrap_or(recheck_at);
                (waiting.retry, waiting.was_told_busy) = (Retry::default(), true);
                // A grant that was heard of before this reply was gone when the store wrote it, and
                // must not be taken for one that came after it.
                let before = waiting.queued.waiter.signal.take_before_reply();
                // The plain first try can't queue: join the store's queue now, and only then wait.
                if self.request.queue != Queue::Join || before {
                    State::Asks
                } else {
                    State::InStoreQueue { recheck_at }
                }
            }
            Step::Cut => State::backs_off(now(), now() + BACKOFF_MIN),
            Step::Failed(_) => State::backs_off(now(), waiting.retry.again_at(now())),
            Step::Unusable(error) => {
                waiting.unusable_grants += 1;
                waiting.unusable = Some(error);
                State::backs_off(now(), waiting.retry.again_at(now()))
            }
        };
        self.join_queue(&waiting.queued.waiter.signal);
        None
    }
}

impl Waiting<'_> {
    /// After so many grants that could not be used. Others may have had the key between them.
    fn lease_is_too_short(&self) -> Option<&StoreError> {
        let many = self.unusable_grants >= timing::UNUSABLE_GRANTS;
        self.unusable.as_ref().filter(|_| many)
    }

    /// When the store is to be asked if nothing is heard before.
    fn asks_at(&self, is_first: bool) -> Option<Instant> {
        match self.state {
            State::InLocalQueue { handoff_until } => handoff_until.filter(|_| is_first),
            State::InStoreQueue { recheck_at } => is_first.then_some(recheck_at),
            State::BacksOff { again_at, .. } => Some(again_at),
            State::Asks => None,
        }
    }
}
