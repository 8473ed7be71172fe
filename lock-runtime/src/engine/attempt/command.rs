//! One command of a request, and what its reply changes.

use std::sync::Arc;
use std::time::Instant;

use lock_store::{Acquired, Link, Queue, StoreErrorKind};

use super::{Attempt, Step};
use crate::engine::hold::Late;
use crate::engine::line::{Place, Signal};
use crate::engine::{time, too_late, unavailable};
use crate::error::LockError;

impl Attempt<'_> {
    /// From now on, commands ask for a place in the queue, and grants are heard.
    pub(super) fn join_queue(&mut self, signal: &Arc<Signal>) {
        self.request.queue = Queue::Join;
        if !self.expecting {
            self.engine
                .lines
                .expect_grant(self.request.claim.owner, signal);
            self.expecting = true;
        }
    }

    /// Grants that are heard over other links are old, or told over this one as well.
    fn hear_over(&mut self, link: Option<Link>) {
        if self.expecting && self.over != link {
            self.over = link;
            let owner = self.request.claim.owner;
            self.engine.lines.expect_over(owner, link);
        }
    }

    /// Sends one acquire, now.
    pub(super) async fn send(
        &mut self,
        place: Option<&Place>,
        sent: Instant,
    ) -> Result<Step, LockError> {
        let engine = self.engine;
        let by = self
            .budget
            .command_by(sent, engine.pulse.answered())
            .max(sent);
        // Known before it is sent, so that an undo can go the same way.
        let (key, queue) = (&self.request.claim.key, self.request.queue);
        self.request.via = engine.store.link_of(key, queue);
        self.in_flight = Some((sent, self.request.via));
        if self.over != Some(self.request.via) {
            self.hear_over(None);
        }
        let result = engine.store.acquire(self.request.clone(), by).await;
        self.in_flight = None;
        if let Err(failure) = &result
            && failure.error.kind() == StoreErrorKind::Timeout
            && self.budget.is_cut(sent, by)
        {
            self.note_unknown(failure.unknown, sent);
            self.give_up_previous();
            return Ok(Step::Cut);
        }
        engine.pulse.note_acquire(sent, &result);
        if result.is_ok() {
            // Whatever the reply, the hold that was passed on has ended.
            self.request.instead_of = None;
        }
        let link = result.as_ref().map(|answer| answer.link).ok();
        match result.map(|answer| answer.value) {
            Ok(Acquired::Granted { token }) => {
                self.present = true;
                self.wrote(link, sent);
                if engine.is_closing() {
                    return Err(LockError::Shutdown);
                }
                let deadline = time::deadline(sent, self.request.lease);
                let now = engine.clock.now();
                if now >= deadline || (self.options.fenced && token.is_none()) {
                    return Ok(Step::Failed(too_late()));
                }
                let renew_at = self
                    .options
                    .renew
                    .then(|| time::renewal_at(sent, self.request.lease));
                let part = self.part(token);
                let turn = self.turn(place, now, token, None);
                self.previous = None;
                Ok(Step::Held(
                    self.held(part, now, sent, deadline, renew_at, turn),
                ))
            }
            Ok(Acquired::Busy { remaining, queued }) => {
                self.previous = None;
                self.present = queued;
                self.confirmed = link.filter(|_| queued).map(|link| (sent, link));
                if queued {
                    self.hear_over(link);
                }
                if queued && queue == Queue::Join {
                    self.wrote(link, sent);
                }
                Ok(Step::Busy {
                    look_at: time::next_look(sent, remaining),
                })
            }
            Ok(Acquired::Conflict) => {
                self.previous = None;
                // An earlier reply may have left a place in the queue.
                Err(LockError::KeyConflict {
                    key: self.request.claim.key.clone(),
                })
            }
            Err(failure) => {
                self.note_unknown(failure.unknown, sent);
                self.give_up_previous();
                if failure.error.kind().is_transient() {
                    Ok(Step::Failed(failure.error))
                } else {
                    Err(unavailable(Some(&self.request.claim.key), failure.error))
                }
            }
        }
    }

    /// Takes note of a command by which the store changed something: no server does that which is not the master.
    fn wrote(&self, link: Option<Link>, sent: Instant) {
        if let Some(link) = link {
            self.engine.lines.wrote(link, sent);
        }
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
}
