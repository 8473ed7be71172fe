//! How a hold ends: passed on to another task of this process, given back to the store, or given back in the background.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lock_store::Released;

use super::hold::{self, Ending, Hold};
use super::line::Lines;
use super::reaper::Job;
use super::shutdown::Active;
use super::turn::Baton;
use super::{Engine, unavailable};
use crate::config::TAKEN_WITHIN;
use crate::error::{LockError, LostReason};

impl Engine {
    /// Ends a hold and waits for the store's word. If it does not come, or nobody waits for it, the background repeats.
    pub(crate) async fn release(&self, hold: &Hold) -> Result<(), LockError> {
        let _active = Active::enter(&*self.active);
        let sent = self.clock.now();
        let Some(ending) = self.end(hold, sent) else {
            return Ok(());
        };
        if let Some(reason) = ending.lost {
            self.end_lost(hold, reason);
            return Err(hold.lost_error(reason));
        }
        let _until_released = match self.pass_on(ending.baton, sent) {
            Ok(()) => return Ok(()),
            Err(baton) => baton,
        };
        let unfinished = Unfinished { engine: self, hold };
        let requests = hold.releases(ending.keep);
        let by = sent + self.defaults.command_timeout;
        let result = self.store.release(requests, by).await;
        self.pulse.note(sent, &result);
        let answer = result.map_err(|failure| {
            tracing::warn!(key = %hold.key().shortened(), error = %failure.error, "a release is repeated in the background");
            self.reaper.count_failure();
            unavailable(Some(hold.key()), failure.error)
        })?;
        let released = answer.value.iter().all(|one| *one == Released::Released);
        // A late acquire that found the lock taken has a place in the queue, which a release leaves there.
        let undone = |(late, _): &(hold::Late, _)| released && late.is_undone(answer.link, sent);
        if hold.late.iter().all(undone) {
            std::mem::forget(unfinished);
        }
        if released {
            self.lines.wrote(answer.link, sent);
            return Ok(());
        }
        tracing::warn!(key = %hold.key().shortened(), "a lock was gone when it was released");
        self.reaper.count_failure();
        Err(hold.lost_error(LostReason::Gone))
    }

    /// Ends a hold without waiting: from any thread, with or without a runtime. Later requests of this client for the
    /// key come after it.
    pub(crate) fn release_in_background(&self, hold: &Hold) {
        if hold.ended() {
            return;
        }
        // A shutdown does not close the store before the reaper knows of it.
        let _active = Active::enter(&*self.active);
        let now = self.clock.now();
        let Some(ending) = self.end(hold, now) else {
            return;
        };
        if let Some(reason) = ending.lost {
            self.end_lost(hold, reason);
        } else if let Err(_until_sent) = self.pass_on(ending.baton, now) {
            self.send_release(hold, true, false);
        }
    }

    /// Ends a hold, the first time, and stops watching it.
    pub(super) fn end(&self, hold: &Hold, now: Instant) -> Option<Ending> {
        let ending = hold.end(now)?;
        self.watchdog.forget_ended(hold, &ending);
        Some(ending)
    }

    /// Passes what an ended hold has on to the next task of this process that waits for it. If that can't be, or nobody
    /// does, gives back what is to be kept until the release.
    fn pass_on(&self, baton: Option<Baton>, now: Instant) -> Result<(), Option<Baton>> {
        let baton = baton.ok_or(None)?;
        if self.is_closing() {
            return Err(Some(baton));
        }
        self.lines.pass(baton, now).map(drop).map_err(Some)
    }

    /// Passes on what was passed on to a request that can't use it, or ends it in the background.
    pub(super) fn pass_back(&self, baton: Baton) {
        let baton = if self.is_closing() {
            baton
        } else {
            match self.lines.pass(baton, self.clock.now()) {
                Ok(wake_up) => return drop(wake_up),
                Err(baton) => baton,
            }
        };
        self.end_turn(&baton);
    }

    /// Ends in the background what the process has in the store and nobody uses.
    pub(super) fn end_turn(&self, baton: &Baton) {
        let now = self.clock.now();
        let requests = vec![baton.release()];
        self.reaper.send(Job::Release {
            requests,
            keep_until: now,
            expires: baton.lasts_until().max(now) + self.defaults.command_timeout,
            first: vec![self.lines.releasing(baton.key())],
            late: Vec::new(),
            expected_gone: true,
        });
    }

    /// A lost hold may still have its key for a moment, or longer at the end of `max_hold` or at a shutdown.
    fn end_lost(&self, hold: &Hold, reason: LostReason) {
        self.count_loss();
        if reason != LostReason::Gone || hold.parts().len() > 1 || !hold.late.is_empty() {
            self.send_release(hold, reason != LostReason::Expired, true);
        }
    }

    pub(super) fn send_release(&self, hold: &Hold, in_order: bool, expected_gone: bool) {
        let now = self.clock.now();
        self.reaper.send(Job::Release {
            requests: hold.releases(Duration::ZERO),
            keep_until: now + hold.keep(now),
            expires: (now + hold.lease).max(hold.deadline() + hold.lease / 50),
            first: hold
                .parts()
                .iter()
                .filter(|_| in_order)
                .map(|part| self.lines.releasing(&part.key))
                .collect(),
            late: hold.late.clone(),
            expected_gone,
        });
    }
}

/// Takes back what was passed on to a task that nobody polls: its key is another's turn then.
pub(super) async fn patrol(engine: Weak<Engine>, lines: Arc<Lines>) {
    loop {
        lines.passing().await;
        loop {
            let Some(clock) = engine.upgrade().map(|engine| engine.clock.clone()) else {
                return;
            };
            clock.sleep_until(clock.now() + TAKEN_WITHIN).await;
            let Some(engine) = engine.upgrade() else {
                return;
            };
            let Some(batons) = lines.not_taken(clock.now() - TAKEN_WITHIN) else {
                break;
            };
            for baton in batons {
                tracing::debug!(key = %baton.key().shortened(), "a waiting task that is not polled is passed over");
                engine.pass_back(baton);
            }
        }
    }
}

/// A release whose end nobody has seen: repeated in the background when this is dropped.
struct Unfinished<'e> {
    engine: &'e Engine,
    hold: &'e Hold,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.engine.send_release(self.hold, true, true);
    }
}
