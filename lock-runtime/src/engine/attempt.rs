//! One request to the store: when to ask it, and what to undo.

mod command;
mod held;

use std::sync::Arc;
use std::time::Instant;

use lock_store::timing::QUEUE_TTL;
use lock_store::{Acquire, Claim, Link, LockKey, Queue, StoreError};

use super::hold::{Hold, Late};
use super::line::Place;
use super::patience::Failing;
use super::reaper::Job;
use super::shutdown::{Active, Entered};
use super::time::{self, Budget};
use super::turn::Baton;
use super::{Engine, unavailable};
use crate::config::{Resolved, TOKEN_WINDOW};
use crate::error::LockError;

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
    /// When the last command was sent to which the store replied that the owner stands in the queue, and over which link
    /// the reply came: a grant that is heard over the same link is younger.
    confirmed: Option<(Instant, Link)>,
    expecting: bool,
    /// Over which link alone a grant is told.
    over: Option<Link>,
    /// What was passed on to this request, and ends with the command that it sends.
    previous: Option<Baton>,
    _active: Entered<&'e Active>,
}

/// A request's place in its line. What was passed on to it and not used goes to the next.
struct InLine<'e> {
    engine: &'e Engine,
    place: Place,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if let Some(baton) = self.place.leave() {
            self.engine.pass_back(baton);
        }
    }
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
            tokens: options.fenced.into(),
            queue: if options.fair {
                Queue::Respect
            } else {
                Queue::Barge
            },
            instead_of: None,
            via: engine.store.link(),
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
            over: None,
            previous: None,
            _active: Active::enter(&*engine.active),
        }
    }

    /// One try, one round trip, now.
    pub(super) async fn once(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let (engine, key) = (self.engine, self.request.claim.key.clone());
        if let Some(settled) = engine.lines.settled(&key) {
            let _ = engine.clock.by(self.budget.gives_up(None), settled).await;
            now = engine.clock.now();
        }
        if engine.is_closing() {
            return Err(LockError::Shutdown);
        }
        match self.send(None, now).await? {
            Step::Held(hold) => Ok(hold),
            Step::Busy { .. } => Err(engine.busy(&key, &self.budget)),
            Step::Failed(error) => Err(unavailable(Some(&key), error)),
            Step::Cut => Err(unavailable(
                Some(&key),
                engine.pulse.last_failure(self.budget.started),
            )),
        }
    }

    /// From now on in line behind the earlier requests of this process, and in the store's queue behind those of others.
    pub(super) async fn wait(&mut self, mut now: Instant) -> Result<Arc<Hold>, LockError> {
        let engine = self.engine;
        // Nothing is passed on to a request that stands in the store's queue with a place of its own.
        let mut asking = self.options.fair || engine.defaults.local_handoffs == 0;
        let (place, mut was_first) = engine.lines.join(&self.request.claim.key, !asking);
        let in_line = InLine { engine, place };
        let place = &in_line.place;
        let mut barges = !self.options.fair && was_first;
        let mut look_at = self.budget.started;
        let mut looks_on = None;
        let mut asked = false;
        // Whether something was heard that only the store can explain.
        let mut called = true;
        let mut failing: Option<Box<(Instant, u32, StoreError)>> = None;
        loop {
            if engine.is_closing() {
                return Err(LockError::Shutdown);
            }
            let look_again = {
                let inbox = place.signal.take();
                if let Some(baton) = inbox.baton {
                    match self.take_over(baton) {
                        Ok(hold) => return Ok(hold),
                        Err(baton) => now = self.goes_on_from(baton),
                    }
                    look_at = now;
                    (asking, barges) = (true, false);
                }
                if let Some(granted) = inbox.granted {
                    if let Some(hold) = self.handed_over(place, granted) {
                        return Ok(hold);
                    }
                    now = engine.clock.now();
                    look_at = now;
                }
                called |= failing.is_some() || inbox.granted.is_some() || inbox.look_again;
                inbox.look_again
            };
            // Others wait for what was passed on and can't be used, and for what the store handed over to a request that
            // is not the first any more, because an earlier one was asleep.
            let must_ask =
                self.previous.is_some() || (called && (self.options.fair || self.expecting));
            let standing = place.look();
            if standing.is_first && !was_first {
                was_first = true;
                // The one before, which has looked until now, has most likely just got what this one waits for.
                if asked && !called {
                    look_at = look_at.max(time::next_look(now, None));
                }
            }
            let turn = standing.is_first || must_ask;
            let over = asked && self.budget.ends().is_some_and(|ends| now >= ends);
            if turn && !asking && standing.looks_on {
                // Another task of this process will pass its hold on, if it ends soon.
                barges = false;
                look_at = *looks_on
                    .get_or_insert_with(|| time::looks_on(now, &self.budget, &engine.defaults));
            } else if turn && !asking {
                look_at = look_at.min(now);
            }
            if turn && !over && (look_again || now >= look_at) {
                if !asking {
                    asking = true;
                    if let Some(baton) = place.asks_the_store() {
                        match self.take_over(baton) {
                            Ok(hold) => return Ok(hold),
                            Err(baton) => now = self.goes_on_from(baton),
                        }
                        barges = false;
                    }
                }
                if !asked && self.options.fenced && place.has_others_behind() {
                    self.request.tokens = 1 + engine.defaults.local_handoffs.min(TOKEN_WINDOW);
                }
                if !barges {
                    self.join_queue(&place.signal);
                }
                barges = false;
                asked = true;
                called = false;
                match self.send(Some(place), now).await? {
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
                        debug_assert!(before.baton.is_none(), "this request is not willing");
                        if before.granted.is_some() || before.look_again {
                            look_at = engine.clock.now();
                            called = true;
                        }
                    }
                    Step::Cut => {
                        look_at = engine.clock.now();
                        if let Some(error) = self.time_is_up(failing.as_deref()).await {
                            return Err(error);
                        }
                    }
                    Step::Failed(error) => {
                        // Counted from the first that failed.
                        let earlier = failing.as_ref().map(|one| (one.0, one.1));
                        let (since, failures) = earlier.unwrap_or((now, 0));
                        look_at = engine.clock.now() + time::backoff(failures + 1);
                        failing = Some(Box::new((since, failures + 1, error)));
                    }
                }
                self.join_queue(&place.signal);
                now = engine.clock.now();
                continue;
            }
            if let Some(error) = self.time_is_up(failing.as_deref()).await {
                return Err(error);
            }
            let look_at = turn.then_some(look_at);
            let wake = engine.wake_at(&self.budget, look_at, failing_since(failing.as_deref()));
            let _ = engine.clock.by(wake, place.signal.notified()).await;
            now = engine.clock.now();
        }
    }

    fn time_is_up(
        &self,
        failing: Option<&(Instant, u32, StoreError)>,
    ) -> impl Future<Output = Option<LockError>> {
        let failing = failing_since(failing);
        let key = &self.request.claim.key;
        self.engine.time_is_up(key, &self.budget, failing, true)
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
        self.give_up_previous();
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
