//! One request to the store: when to ask it, what to trust, and what to undo.

use std::sync::Arc;
use std::time::Instant;

use super::hold::{Grant, Hold, Late, Part};
use super::line::Signal;
use super::patience::Failing;
use super::reaper::Job;
use super::time::{self, Budget};
use super::{Engine, Entered, too_late, unavailable};
use crate::config::{QUEUE_TTL, Resolved};
use crate::error::{LockError, StoreError, StoreErrorKind};
use crate::key::LockKey;
use crate::store::{Acquire, Acquired, Claim, Link, Queue};

/// What one command came to.
enum Step {
    Held(Arc<Hold>),
    /// Look again at this time, unless called before.
    Busy {
        look_at: Instant,
    },
    Failed(StoreError),
    /// No answer in the little time that the budget had left, which says nothing about the store.
    Cut,
}

/// One request to the store. Made before the first byte is sent; dropping it undoes whatever it may have left there.
pub(super) struct Attempt<'e> {
    engine: &'e Engine,
    options: &'e Resolved,
    budget: Budget,
    request: Acquire,
    /// When and at which link the command was sent that is under way.
    in_flight: Option<(Instant, Link)>,
    /// The store may have the owner in the queue or as holder.
    present: bool,
    late: Option<Late>,
    /// When the last command was sent to which the store replied that the owner stands in the queue.
    confirmed: Option<Instant>,
    expecting: bool,
    _active: Entered,
}

impl<'e> Attempt<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        key: LockKey,
        options: &'e Resolved,
        budget: Budget,
    ) -> Self {
        let request = Acquire {
            claim: Claim {
                key,
                owner: engine.next_owner(),
                share: options.share,
            },
            lease: options.lease,
            first_lease: time::first_lease(options.lease),
            fence: options.fenced,
            queue: if options.fair {
                Queue::Respect
            } else {
                Queue::Barge
            },
        };
        Self {
            engine,
            options,
            budget,
            request,
            in_flight: None,
            present: false,
            late: None,
            confirmed: None,
            expecting: false,
            _active: engine.active.enter(),
        }
    }

    /// One try, one round trip.
    pub(super) async fn once(&mut self) -> Result<Arc<Hold>, LockError> {
        let (engine, key) = (self.engine, self.request.claim.key.clone());
        if let Some(settled) = engine.lines.settled(&key) {
            let _ = engine.clock.by(self.budget.gives_up(None), settled).await;
        }
        if engine.is_closing() {
            return Err(LockError::Shutdown);
        }
        match self.send().await? {
            Step::Held(hold) => Ok(hold),
            Step::Busy { .. } => Err(engine.busy(&key, &self.budget)),
            Step::Failed(error) => Err(unavailable(Some(&key), error)),
            Step::Cut => Err(unavailable(
                Some(&key),
                engine.pulse.last_failure(self.budget.started),
            )),
        }
    }

    /// In line behind the earlier requests of this process, and in the store's queue behind those of others.
    pub(super) async fn wait(&mut self) -> Result<Arc<Hold>, LockError> {
        let engine = self.engine;
        let place = engine.lines.join(&self.request.claim.key);
        if self.options.fair || !place.is_first() {
            self.join_queue(&place.signal);
        }
        let mut look_at = self.budget.started;
        let mut asked = false;
        // Whether something was heard that only the store can explain.
        let mut called = true;
        let mut failing: Option<(Instant, u32, StoreError)> = None;
        loop {
            if engine.is_closing() {
                return Err(LockError::Shutdown);
            }
            let inbox = place.signal.take();
            if let Some(token) = inbox.granted {
                if let Some(hold) = self.handed_over(token) {
                    return Ok(hold);
                }
                look_at = engine.clock.now();
            }
            called |= failing.is_some() || inbox.granted.is_some() || inbox.look_again;
            let turn = place.is_first() || (self.options.fair && called);
            let now = engine.clock.now();
            let over = asked && self.budget.ends().is_some_and(|ends| now >= ends);
            if turn && !over && (inbox.look_again || now >= look_at) {
                asked = true;
                called = false;
                match self.send().await? {
                    Step::Held(hold) => return Ok(hold),
                    Step::Busy { look_at: at } => {
                        failing = None;
                        // The plain first try can't queue: join the queue now, and only then wait.
                        look_at = if self.request.queue == Queue::Join {
                            at
                        } else {
                            engine.clock.now()
                        };
                        // A grant that was heard of before this reply was gone when the store wrote it, and must not be
                        // taken for one that came after it.
                        let before = place.signal.take();
                        if before.granted.is_some() || before.look_again {
                            look_at = engine.clock.now();
                            called = true;
                        }
                    }
                    Step::Cut => {
                        look_at = engine.clock.now();
                        if let Some(error) = self.time_is_up(failing.as_ref()).await {
                            return Err(error);
                        }
                    }
                    Step::Failed(error) => {
                        let (since, failures) = failing
                            .as_ref()
                            .map_or((self.budget.started.max(look_at), 0), |f| (f.0, f.1));
                        look_at = engine.clock.now() + time::backoff(failures + 1);
                        failing = Some((since, failures + 1, error));
                    }
                }
                self.join_queue(&place.signal);
                continue;
            }
            if let Some(error) = self.time_is_up(failing.as_ref()).await {
                return Err(error);
            }
            let look_at = turn.then_some(look_at);
            let wake = engine.wake_at(&self.budget, look_at, failing_since(failing.as_ref()));
            let _ = engine.clock.by(wake, place.signal.notified()).await;
        }
    }

    /// From now on, commands ask for a place in the queue, and grants are heard.
    fn join_queue(&mut self, signal: &Arc<Signal>) {
        self.request.queue = Queue::Join;
        if !self.expecting {
            self.engine
                .lines
                .expect_grant(self.request.claim.owner, signal);
            self.expecting = true;
        }
    }

    /// Sends one acquire.
    async fn send(&mut self) -> Result<Step, LockError> {
        let engine = self.engine;
        let sent = engine.clock.now();
        let by = self
            .budget
            .command_by(sent, engine.pulse.answered())
            .max(sent);
        self.in_flight = Some((sent, engine.store.link_of(&self.request.claim.key)));
        let result = engine.store.acquire(self.request.clone(), by).await;
        self.in_flight = None;
        if let Err(failure) = &result
            && failure.error.kind() == StoreErrorKind::Timeout
            && self.budget.is_cut(sent, by)
        {
            self.note_unknown(failure.unknown, sent);
            return Ok(Step::Cut);
        }
        engine.pulse.note_acquire(sent, &result);
        match result.map(|answer| answer.value) {
            Ok(Acquired::Granted { token }) => {
                self.present = true;
                if engine.is_closing() {
                    return Err(LockError::Shutdown);
                }
                let deadline = time::deadline(sent, self.request.lease);
                if engine.clock.now() >= deadline || (self.request.fence && token.is_none()) {
                    return Ok(Step::Failed(too_late()));
                }
                let renew_at = self
                    .options
                    .renew
                    .then(|| time::renewal_at(sent, self.request.lease));
                Ok(Step::Held(self.held(sent, deadline, token, renew_at)))
            }
            Ok(Acquired::Busy { remaining, queued }) => {
                self.present = queued;
                self.confirmed = queued.then_some(sent);
                Ok(Step::Busy {
                    look_at: time::next_look(sent, remaining),
                })
            }
            Ok(Acquired::Conflict) => {
                // An earlier reply may have left a place in the queue.
                Err(LockError::KeyConflict {
                    key: self.request.claim.key.clone(),
                })
            }
            Err(failure) => {
                self.note_unknown(failure.unknown, sent);
                if failure.error.kind().is_transient() {
                    Ok(Step::Failed(failure.error))
                } else {
                    Err(unavailable(Some(&self.request.claim.key), failure.error))
                }
            }
        }
    }

    async fn time_is_up(&self, failing: Option<&(Instant, u32, StoreError)>) -> Option<LockError> {
        let (failing, refusing) = (failing_since(failing), self.engine.pulse.refusing());
        self.engine
            .time_is_up(&self.request.claim.key, &self.budget, failing, refusing)
            .await
    }

    /// Takes note of a command that may have been carried out, or may yet be.
    fn note_unknown(&mut self, link: Option<Link>, sent: Instant) {
        if let Some(link) = link {
            self.late = Some(Late::merge(self.late, link, sent + self.request.lease));
            // A repeat must know its own token again, which the plain command does not.
            if self.request.queue == Queue::Barge {
                self.request.queue = Queue::Respect;
            }
        }
    }

    /// A hold that was handed over, if it can be trusted without asking.
    fn handed_over(&mut self, token: Option<u64>) -> Option<Arc<Hold>> {
        let now = self.engine.clock.now();
        let confirmed = self.confirmed?;
        let deadline = time::handed_over_deadline(now, confirmed, self.request.lease)?;
        if self.request.fence && token.is_none() {
            return None;
        }
        // Its first lease is short: the watchdog asks for the whole one at once.
        Some(self.held(now, deadline, token, Some(now)))
    }

    /// `since` is what `max_hold` is counted from.
    fn held(
        &mut self,
        since: Instant,
        deadline: Instant,
        token: Option<u64>,
        renew_at: Option<Instant>,
    ) -> Arc<Hold> {
        let engine = self.engine;
        let grant = Grant {
            id: self.request.claim.owner.request,
            deadline,
            ends: time::hold_ends(since, self.options),
            late: self
                .late
                .take()
                .map(|late| (late, self.request.clone()))
                .into_iter()
                .collect(),
        };
        let claim = &self.request.claim;
        let part = Part::new(claim.key.clone(), claim.owner, token);
        let clock = engine.clock.clone();
        let hold = Arc::new(Hold::new([part], self.options, grant, clock));
        engine.watchdog.watch(Arc::clone(&hold), renew_at);
        self.present = false;
        hold
    }
}

fn failing_since(failing: Option<&(Instant, u32, StoreError)>) -> Failing<'_> {
    failing.map(|(since, _, error)| (*since, error))
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let (engine, owner) = (self.engine, self.request.claim.owner);
        if self.expecting {
            engine.lines.forget_grant(owner);
        }
        if let Some((sent, link)) = self.in_flight {
            self.late = Some(Late::merge(self.late, link, sent + self.request.lease));
        }
        if self.present || self.late.is_some() {
            let expires = engine.clock.now() + self.request.lease.max(QUEUE_TTL);
            let first = Some(engine.lines.releasing(&self.request.claim.key));
            engine.reaper.send(Job::Undo {
                request: self.request.clone(),
                late: self.late,
                expires,
                first,
            });
        }
    }
}
