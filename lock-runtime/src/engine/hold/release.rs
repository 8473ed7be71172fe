//! The release of a hold: handed off to another task of this process, given back to the store, or
//! given back in the background.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_store::{Acquire, Instant, Release, Released};

use super::Hold;
use super::part::Part;
use crate::engine::Engine;
use crate::engine::background::active::Active;
use crate::engine::background::cleanup::{CleanupJob, GoneHold, PendingRelease};
use crate::engine::errors::unavailable;
use crate::engine::late_acquire::LateAcquire;
use crate::engine::local_queue::Handoff;
use crate::error::{LockError, LostReason};

impl Hold {
    fn release_requests<'p>(
        &self,
        parts: impl IntoIterator<Item = &'p Part>,
        keep: Duration,
    ) -> Vec<Release> {
        let release = |part| Release::new(self.claim(part), keep);
        parts.into_iter().map(release).collect()
    }

    /// Earlier commands with an unknown outcome for the keys of these parts.
    fn pending_outcomes_of(&self, parts: &[&Part]) -> Vec<(LateAcquire, Acquire)> {
        let outcomes = self.pending_outcomes.iter();
        let of_parts = outcomes.filter(|(_, request)| {
            let key = &request.claim.key;
            parts.iter().any(|part| part.key == *key)
        });
        of_parts.cloned().collect()
    }
}

/// Whether later requests of this client for the keys wait for a release in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum LaterRequests {
    Wait,
    GoOn,
}

impl Engine {
    /// Ends a hold and waits for the store's answer. If it does not come, or nobody waits for it,
    /// the background repeats the release.
    pub(crate) async fn release(&self, hold: &Hold) -> Result<(), LockError> {
        self.check_process()?;
        let _active = Active::enter(&*self.active);
        let sent = self.clock.now();
        let Some(ending) = self.end(hold, sent) else {
            return Ok(());
        };
        if let Some(reason) = ending.lost {
            self.end_lost(hold, reason);
            return Err(hold.lost_error(reason));
        }
        // On drop, tells observers how the hold ended: last, so that nobody waits for it.
        let mut told = ToldEnd {
            engine: self,
            hold,
            at: sent,
            was_gone: false,
        };
        let _until_released = match self.hand_off(ending.handoff) {
            Ok(()) => return Ok(()),
            Err(handoff) => handoff,
        };
        let unfinished = Unfinished { engine: self, hold };
        let requests = hold.release_requests(hold.parts(), ending.keep);
        let by = sent + self.defaults.command_timeout;
        let result = self.store.release(requests, by).await;
        self.liveness.note(sent, &result);
        let answer = result.map_err(|failure| {
            tracing::warn!(
                key = %hold.key().shortened(), error = %failure.error,
                "a release is repeated in the background"
            );
            self.cleanup.count_failure();
            unavailable(Some(hold.key()), failure.error)
        })?;
        let released = answer.value.iter().all(|one| *one == Released::Released);
        let undone =
            |(late, _): &(LateAcquire, _)| late.is_undone_by_release(released, answer.link, sent);
        if hold.pending_outcomes.iter().all(undone) {
            std::mem::forget(unfinished);
        }
        if released {
            self.grants.note_write(answer.link, sent);
            return Ok(());
        }
        tracing::warn!(key = %hold.key().shortened(), "a lock was gone when it was released");
        self.cleanup.count_failure();
        told.was_gone = true;
        Err(hold.lost_error(LostReason::Gone))
    }

    /// Ends a hold without waiting: from any thread, with or without a runtime. Later requests of
    /// this client for the key come after it.
    pub(crate) fn release_in_background(&self, hold: &Hold) {
        self.release_unawaited(hold, true);
    }

    /// Releases in the background a part of what a request wanted. No observer hears of it.
    pub(in crate::engine) fn give_back(&self, hold: &Hold) {
        self.release_unawaited(hold, false);
    }

    fn release_unawaited(&self, hold: &Hold, tells: bool) {
        if self.has_no_thread() || hold.is_released() {
            return;
        }
        // A shutdown does not close the store before the cleanup task knows of it.
        let _active = Active::enter(&*self.active);
        let now = self.clock.now();
        let Some(ending) = self.end(hold, now) else {
            return;
        };
        if let Some(reason) = ending.lost {
            self.end_lost(hold, reason);
            return;
        }
        // Keeps the tenure until the release is queued.
        if let Err(_until_queued) = self.hand_off(ending.handoff) {
            self.send_release(hold, LaterRequests::Wait, GoneHold::IsFailure);
        }
        if tells {
            self.observed.record_released(hold, now);
        }
    }

    /// Ends a hold, the first time, and stops watching it.
    pub(in crate::engine) fn end(&self, hold: &Hold, now: Instant) -> Option<Ending> {
        let ending = hold.end(now)?;
        self.watchdog.forget_ended(hold, ending.watched_at);
        Some(ending)
    }

    /// Releases a lost hold in the background. The store may have it for a moment more, or longer
    /// after `max_hold` or a shutdown. If a quorum's majority has lost it, the others keep it until
    /// this release: by then its owner knows of the loss.
    fn end_lost(&self, hold: &Hold, reason: LostReason) {
        self.observed.record_lost(hold, self.clock.now());
        let later = match reason.is_end_of_lease() {
            true => LaterRequests::GoOn,
            false => LaterRequests::Wait,
        };
        self.send_release(hold, later, GoneHold::IsExpected);
    }

    /// Releases in the background: at each server by itself, so that one that does not answer holds
    /// back no request for a key of another.
    pub(in crate::engine) fn send_release(
        &self,
        hold: &Hold,
        later: LaterRequests,
        gone: GoneHold,
    ) {
        let now = self.clock.now();
        let mut by_link = BTreeMap::<_, Vec<_>>::new();
        for part in hold.parts() {
            let link = self.store.link_of(&part.key);
            by_link.entry(link).or_default().push(part);
        }
        for parts in by_link.into_values() {
            let waited_for = parts.iter().filter(|_| later == LaterRequests::Wait);
            self.cleanup.send(CleanupJob::Release(PendingRelease {
                keep_until: now + hold.keep(now),
                // A renewal may be under way, or its answer lost.
                expires: (now + hold.lease).max(hold.stored_until()),
                holds_back: waited_for
                    .map(|part| self.local_queues.releasing(&part.key))
                    .collect(),
                pending_outcomes: hold.pending_outcomes_of(&parts),
                requests: hold.release_requests(parts, Duration::ZERO),
                gone,
            }));
        }
    }
}

/// A release that has not ended yet. If this is dropped, the background repeats it.
struct Unfinished<'e> {
    engine: &'e Engine,
    hold: &'e Hold,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let (later, gone) = (LaterRequests::Wait, GoneHold::IsExpected);
        self.engine.send_release(self.hold, later, gone);
    }
}

/// Tells observers how a hold has ended, when this is dropped.
struct ToldEnd<'e> {
    engine: &'e Engine,
    hold: &'e Hold,
    at: Instant,
    was_gone: bool,
}

impl Drop for ToldEnd<'_> {
    fn drop(&mut self) {
        let observed = &self.engine.observed;
        match self.was_gone {
            true => observed.record_loss(self.hold, LostReason::Gone, self.at),
            false => observed.record_released(self.hold, self.at),
        }
    }
}

/// What a hold leaves when it ends.
#[derive(Debug)]
pub(in crate::engine) struct Ending {
    /// Why it was lost, if it was.
    pub(in crate::engine) lost: Option<LostReason>,
    /// When the watchdog would act on it next.
    pub(in crate::engine) watched_at: Option<Instant>,
    /// How long its key stays taken.
    pub(in crate::engine) keep: Duration,
    /// The hold for another task of this process. There is none if the key stays taken, if the hold
    /// can't be trusted any more, or if an undo under way could end it.
    pub(in crate::engine) handoff: Option<Handoff>,
}

impl Hold {
    /// Ends the hold, the first time. From then on it can't be lost, and is not watched anew.
    pub(in crate::engine) fn end(&self, now: Instant) -> Option<Ending> {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.released, true) {
            return None;
        }
        let keep = state
            .keep_until
            .map(|until| until.saturating_duration_since(now));
        let keep = keep.unwrap_or_default();
        let usable = state.lost.is_none()
            && now < state.deadline
            && keep.is_zero()
            && self.pending_outcomes.is_empty();
        let (tenure, deadline) = (state.tenure.take(), state.deadline);
        let (lost, watched_at) = (state.lost, state.watched_at);
        // A tenure that can't be handed off ends here and wakes waiters. That is not done under the
        // lock.
        drop(state);
        let tenure = tenure.filter(|_| usable);
        Some(Ending {
            lost,
            watched_at,
            keep,
            handoff: tenure.map(|tenure| tenure.into_handoff(deadline)),
        })
    }

    /// Ends a hold that becomes a part of another hold of this client. False if it was lost or
    /// released before.
    pub(in crate::engine) fn become_part(&self) -> bool {
        let mut state = self.state.lock();
        let ended = std::mem::replace(&mut state.released, true);
        !ended && state.lost.is_none()
    }
}
