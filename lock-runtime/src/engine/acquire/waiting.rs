//! The way to one key, as a machine whose states have names.
//!
//! A request joins the local queue behind the earlier requests of this process. When it is its turn
//! it asks the store. If the key is taken it stands in the store's queue, behind those of other
//! processes, until it is handed the lock or asks again. Each event is a function that returns the
//! next state, or the hold.

use std::ops::ControlFlow;
use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;

use lock_store::timing::BACKOFF_MIN;
use lock_store::{Instant, Queue, StoreError};

use super::command::CommandOutcome;
use super::foreign::ForeignHolder;
use super::lock_facts::HeardSoFar;
use super::long_wait::LongWait;
use super::task::AcquireTask;
use crate::engine::Engine;
use crate::engine::fencing::window;
use crate::engine::hold::Hold;
use crate::engine::local_queue::{Doing, Handoff, QueuedRequest, Waiter};
use crate::engine::timing::{self, Retry};
use crate::error::LockError;

/// A request in the local queue. A handoff that it did not use goes to the next.
struct Queued<'e> {
    engine: &'e Engine,
    waiter: Waiter,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Some(handoff) = self.waiter.leave() {
            self.engine.hand_off_or_end(handoff);
        }
    }
}

/// A request that waits, and what it has learned.
struct WaitingRequest<'e> {
    queued: Queued<'e>,
    state: RequestState,
    heard: HeardSoFar,
    foreign: ForeignHolder,
    warning: LongWait,
    /// How many grants could not be used.
    unusable_grants: u32,
    /// Why the last one could not, if that was the last answer.
    unusable: Option<StoreError>,
    retry: Retry,
}

impl<'e> AcquireTask<'e> {
    /// Waits for the key, as long as the budget says.
    pub(super) async fn wait(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let engine = self.engine;
        let mut waiting = self.start_waiting(now);
        loop {
            if engine.is_closing() {
                return Err(LockError::Shutdown);
            }
            if let Break(hold) = self.advance(&mut waiting, now) {
                return Ok(hold);
            }
            let key = &self.request.claim.key;
            let waiter = &waiting.queued.waiter;
            waiting.warning.warn(engine, now, key, waiter);
            self.check_patience(waiter, now, waiting.lease_is_too_short())?;
            if waiting.is_to_ask(self.budget.end(), now) {
                let is_first = self.prepare_command(&mut waiting);
                let outcome = self.send(Some(&waiting.queued.waiter), now).await?;
                match self.take_outcome(&mut waiting, outcome, is_first) {
                    Break(hold) => return Ok(hold),
                    Continue(state) => waiting.state = state,
                }
            } else {
                let in_time = self.check_time(waiter, waiting.heard).await;
                in_time.map_err(|error| match waiting.unusable.take() {
                    None => error,
                    Some(unusable) => self.unavailable(unusable),
                })?;
                let waiter = &waiting.queued.waiter;
                let wake = self.prepare_sleep(&waiting);
                let _ = engine.clock.by(wake, waiter.signal.notified()).await;
            }
            now = engine.clock.now();
        }
    }

    /// Joins the local queue. The requests of a fair lock ask the store at once, wherever they
    /// stand.
    fn start_waiting(&mut self, now: Instant) -> WaitingRequest<'e> {
        let (queued, is_first) = self.join_local_queue(now);
        if !is_first {
            self.barge_no_more();
        }
        WaitingRequest {
            queued,
            state: RequestState::first(self.options.fair),
            heard: HeardSoFar::Nothing,
            foreign: ForeignHolder::default(),
            warning: LongWait::new(self.budget.started, self.options, &self.engine.defaults),
            unusable_grants: 0,
            unusable: None,
            retry: Retry::default(),
        }
    }

    fn join_local_queue(&self, now: Instant) -> (Queued<'e>, bool) {
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

    /// Applies the inbox, then the time that has passed, to the state.
    fn advance(&mut self, waiting: &mut WaitingRequest<'e>, now: Instant) -> Next {
        waiting.state = self.drain_inbox(waiting, now)?;
        waiting.state = self.move_up(waiting, now)?;
        Continue(waiting.state)
    }

    /// Applies the inbox to the state; returns a hold if one arrived.
    fn drain_inbox(&mut self, waiting: &mut WaitingRequest<'e>, now: Instant) -> Next {
        let waiter = &waiting.queued.waiter;
        let inbox = waiter.signal.take();
        if inbox.skipped {
            return Continue(self.start_over(waiting));
        }
        if let Some(handoff) = inbox.handoff {
            return self.use_handoff(handoff);
        }
        if let Some(granted) = inbox.granted {
            // Only the store can explain a grant that can't be used as it is.
            let hold = self.accept_hand_over(waiter, granted);
            return hold.map_or(Continue(RequestState::Asks), Break);
        }
        Continue(match waiting.state {
            state if !inbox.recheck => state,
            RequestState::InLocalQueue { .. } if waiter.standing().is_first => {
                RequestState::InLocalQueue {
                    handoff_until: Some(now),
                }
            }
            RequestState::InStoreQueue { .. } | RequestState::BehindFirst { .. } => {
                RequestState::Asks
            }
            // The store has become another, which need not be well either.
            RequestState::BacksOff {
                failed_at,
                again_at,
            } => RequestState::back_off(failed_at, again_at.min(failed_at + BACKOFF_MIN)),
            state => state,
        })
    }

    /// Goes on with the hold of another task, or asks the store to end that one's tenure.
    fn use_handoff(&mut self, handoff: Handoff) -> Next {
        match self.take_over(handoff) {
            Ok(hold) => Break(hold),
            Err(handoff) => {
                self.ask_instead_of(handoff);
                Continue(RequestState::Asks)
            }
        }
    }

    /// It was skipped: others have got what it had, and it goes on from the end of the queue.
    fn start_over(&mut self, waiting: &mut WaitingRequest<'e>) -> RequestState {
        self.restart();
        (waiting.queued, _) = self.join_local_queue(self.engine.clock.now());
        (waiting.unusable_grants, waiting.unusable) = (0, None);
        RequestState::first(self.options.fair)
    }

    /// Its turn may have come, by time or because others have left.
    fn move_up(&mut self, waiting: &mut WaitingRequest<'e>, now: Instant) -> Next {
        let waiter = &waiting.queued.waiter;
        let standing = waiter.standing();
        let state = match waiting.state {
            RequestState::InLocalQueue { handoff_until } if standing.is_first => {
                if standing.may_get_handoff {
                    // Another task of this process will hand off its hold, if it ends soon.
                    self.barge_no_more();
                    let until = handoff_until.unwrap_or_else(|| {
                        timing::handoff_wait_end(now, &self.budget, &self.engine.defaults)
                    });
                    if now < until {
                        return Continue(RequestState::InLocalQueue {
                            handoff_until: Some(until),
                        });
                    }
                }
                return match waiter.decline_handoffs() {
                    Some(handoff) => self.use_handoff(handoff),
                    None => Continue(RequestState::Asks),
                };
            }
            RequestState::BehindFirst { recheck_at } if waiter.is_at_front() => {
                RequestState::InStoreQueue {
                    recheck_at: self.first_recheck(waiter, recheck_at, now),
                }
            }
            state => state,
        };
        Continue(match state {
            RequestState::InStoreQueue { recheck_at } if standing.is_first && now >= recheck_at => {
                RequestState::Asks
            }
            RequestState::BacksOff { again_at, .. } if now >= again_at => RequestState::Asks,
            state => state,
        })
    }

    /// When a request that has become the first asks again.
    fn first_recheck(&self, waiter: &Waiter, recheck_at: Instant, now: Instant) -> Instant {
        if self.is_behind_a_grant(waiter) {
            return now;
        }
        // The one before has rechecked until now. Most likely it has just got what this one waits
        // for. But the store must hear of this client as often as before.
        let reasked = waiter.liveness().reasked_at();
        let next = reasked.map(|at| timing::next_recheck(at, None));
        next.map_or(recheck_at, |next| next.max(recheck_at))
    }

    /// True if a request before it was granted a share after this one last asked. Something was
    /// freed without a message, so this one may get its own share.
    fn is_behind_a_grant(&self, waiter: &Waiter) -> bool {
        let asked = self.confirmed.map(|(sent, _)| sent);
        self.request.claim.permits.is_some() && waiter.liveness().granted_at() > asked
    }

    /// Makes the request ready for its next command: how many tokens it asks for, its place in the
    /// store's queue, the patrol over its local queue, and that it has asked. True if it is the
    /// first of the local queue.
    fn prepare_command(&mut self, waiting: &mut WaitingRequest<'e>) -> bool {
        let waiter = &waiting.queued.waiter;
        let has_window = self.engine.capabilities.token_window;
        let is_next = waiting.heard == HeardSoFar::Nothing && self.options.fenced && has_window;
        if is_next && waiter.has_others_behind() {
            self.request.tokens = window::for_handoffs(&self.engine.defaults);
        }
        if self.request.queue != Queue::Barge {
            self.join_store_queue(&waiter.signal);
        }
        if waiting.heard == HeardSoFar::Busy {
            // It may stop being polled before it sleeps, and have a place by then.
            self.engine.local_queues.put_on_patrol(waiter.queue());
        }
        waiting.heard = waiting.heard.max(HeardSoFar::Asked);
        // Those of other locks ask when they are the first.
        !self.options.fair || waiter.is_at_front()
    }

    /// Applies a command's outcome. Returns the hold, or the next state; then grants are heard from
    /// now on.
    fn take_outcome(
        &mut self,
        waiting: &mut WaitingRequest<'e>,
        outcome: CommandOutcome,
        is_first: bool,
    ) -> Next {
        let now = self.engine.clock.now();
        waiting.unusable = None;
        let state = match outcome {
            CommandOutcome::Held(hold) => return Break(hold),
            // Its inbox says so too.
            CommandOutcome::Skipped => return Continue(waiting.state),
            CommandOutcome::Busy { recheck_at, holder } => {
                let (claim, turns) = (&self.request.claim, &self.engine.foreign_turns);
                let foreign = waiting.foreign.recheck_at(holder, claim, turns, now);
                let recheck_at = foreign.unwrap_or(recheck_at);
                (waiting.retry, waiting.heard) = (Retry::default(), HeardSoFar::Busy);
                // Drop grants heard before this reply. The store had ended them when it answered
                // `busy`.
                let before = waiting.queued.waiter.signal.take_before_reply();
                match is_first {
                    // The plain first try can't queue: join the store's queue now, and only then
                    // wait.
                    _ if self.request.queue != Queue::Join || before => RequestState::Asks,
                    true => RequestState::InStoreQueue { recheck_at },
                    false => RequestState::BehindFirst { recheck_at },
                }
            }
            CommandOutcome::Cut(_) => RequestState::back_off(now, now + BACKOFF_MIN),
            CommandOutcome::Failed(_) => RequestState::back_off(now, waiting.retry.again_at(now)),
            CommandOutcome::Unusable(error) => {
                waiting.unusable_grants += 1;
                waiting.unusable = Some(error);
                RequestState::back_off(now, waiting.retry.again_at(now))
            }
        };
        self.join_store_queue(&waiting.queued.waiter.signal);
        Continue(state)
    }

    /// When it wakes, if nothing wakes it before.
    fn prepare_sleep(&self, waiting: &WaitingRequest<'e>) -> Instant {
        let waiter = &waiting.queued.waiter;
        let next_ask_at = waiting.state.next_ask_at(waiter.standing().is_first);
        let wake = waiting.warning.wake_at(self.wake_at(waiter, next_ask_at));
        self.observed.record_queued();
        waiter.signal.note_doing(Doing::Sleeps(wake));
        self.engine.local_queues.put_on_patrol(waiter.queue());
        wake
    }
}

impl WaitingRequest<'_> {
    /// Whether to ask the store now. After its wait, only a request that has never asked does.
    fn is_to_ask(&self, ends: Option<Instant>, now: Instant) -> bool {
        let is_over = || ends.is_some_and(|ends| now >= ends);
        matches!(self.state, RequestState::Asks)
            && (self.heard == HeardSoFar::Nothing || !is_over())
    }

    /// The error of the last grant after several that could not be used. Others may have had the
    /// key between them.
    fn lease_is_too_short(&self) -> Option<&StoreError> {
        let is_enough = self.unusable_grants >= timing::UNUSABLE_GRANTS;
        self.unusable.as_ref().filter(|_| is_enough)
    }
}

/// Where a waiting request stands.
#[derive(Clone, Copy)]
pub(super) enum RequestState {
    /// In the local queue, and the store knows nothing of it. As the first, it waits until
    /// `handoff_until` for the hold of another task.
    InLocalQueue { handoff_until: Option<Instant> },
    /// The store is to be asked now.
    Asks,
    /// The store has said that the key is taken. The first of the local queue asks again at
    /// `recheck_at`.
    InStoreQueue { recheck_at: Instant },
    /// The same, behind another request of this process, which asks for both. As the first, it
    /// would ask again at `recheck_at`.
    BehindFirst { recheck_at: Instant },
    /// The store failed at `failed_at`, or refused for now. It is asked again at `again_at`.
    BacksOff {
        failed_at: Instant,
        again_at: Instant,
    },
}

/// What a request goes on with: the state that follows, or the hold that it got.
pub(super) type Next = ControlFlow<Arc<Hold>, RequestState>;

impl RequestState {
    pub(super) fn back_off(failed_at: Instant, again_at: Instant) -> Self {
        Self::BacksOff {
            failed_at,
            again_at,
        }
    }

    pub(super) fn first(fair: bool) -> Self {
        if fair {
            Self::Asks
        } else {
            Self::InLocalQueue {
                handoff_until: None,
            }
        }
    }

    /// When the store is to be asked if nothing is heard before.
    pub(super) fn next_ask_at(self, is_first: bool) -> Option<Instant> {
        match self {
            Self::InLocalQueue { handoff_until } => handoff_until.filter(|_| is_first),
            Self::InStoreQueue { recheck_at } => is_first.then_some(recheck_at),
            Self::BacksOff { again_at, .. } => Some(again_at),
            Self::Asks | Self::BehindFirst { .. } => None,
        }
    }
}
