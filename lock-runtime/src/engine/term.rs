//! [`Candidate`] and [`Term`]: who stands for a lock again and again, and each time that it has it.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Instant, LockKey};

use super::Engine;
use super::timing::Retry;
use crate::config::Resolved;
use crate::error::{LockError, LostReason};
use crate::observe::{LockKind, Subject, TermEnd, What};

/// A request that went on for longer than this has met a store that works.
const OUTAGE: Duration = Duration::from_secs(30);

/// Stands for a lock whenever it does not have it.
pub(crate) struct Candidate {
    engine: Arc<Engine>,
    kind: LockKind,
    lease: Duration,
    retry: Retry,
    /// The store fails, and that was logged.
    failing: bool,
    /// Its lock was revoked: it leaves the next term to others.
    revoked: bool,
}

/// A hold of a candidate, from before the first poll of its body to the body's end.
pub(crate) struct Term<'c> {
    candidate: &'c Candidate,
    keys: &'c [LockKey],
    began: Instant,
    ended: bool,
}

impl Candidate {
    pub(crate) fn new(engine: &Arc<Engine>, options: &Resolved, keys: &[LockKey]) -> Self {
        let candidate = Self {
            engine: Arc::clone(engine),
            kind: LockKind::of(options.permits),
            lease: options.lease,
            retry: Retry::default(),
            failing: false,
            revoked: false,
        };
        candidate.record(keys, What::Candidate);
        candidate
    }

    pub(crate) fn now(&self) -> Instant {
        self.engine.clock.now()
    }

    pub(crate) fn begin_term<'c>(&'c self, keys: &'c [LockKey]) -> Term<'c> {
        let term = Term {
            candidate: self,
            keys,
            began: self.engine.clock.now(),
            ended: false,
        };
        if let Some(key) = keys.first() {
            tracing::info!(key = %key.shortened(), "this process leads");
        }
        self.record(keys, What::TermBegan);
        term
    }

    /// A short term counts as a failure: a lock that is lost again and again is asked for no more
    /// often than one that fails.
    pub(crate) fn note_lost(&mut self, lost: &LockError, lasted: Duration) {
        let reason = LostReason::Revoked;
        self.revoked = matches!(lost, LockError::Lost { reason: why, .. } if *why == reason);
        self.failing = false;
        // A fixed lease, and a `max_hold` of one lease, end a little sooner than the lease.
        if lasted >= self.lease / 2 {
            self.retry = Retry::default();
        }
    }

    /// Whether a later request may get the lock. This one began at `began`.
    pub(crate) fn note_refused(&mut self, error: &LockError, began: Instant) -> bool {
        let may_pass = match error {
            LockError::Busy { .. } => true,
            LockError::Unavailable { source, .. } => source.kind().is_transient(),
            _ => false,
        };
        if self.now().saturating_duration_since(began) > OUTAGE {
            self.failing = false;
            self.retry = Retry::default();
        }
        if may_pass && !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "can't stand for a lock; it is tried again until it works");
        }
        may_pass
    }

    /// Until it may stand again, or a shutdown has begun.
    pub(crate) async fn rest(&mut self) {
        let clock = &self.engine.clock;
        let again = match std::mem::take(&mut self.revoked) {
            true => clock.now() + self.lease,
            false => self.retry.again_at(clock.now()),
        };
        let _ = clock.by(again, self.engine.closing()).await;
    }

    fn record(&self, keys: &[LockKey], what: What<'_>) {
        let more = keys.len().saturating_sub(1);
        let key = keys.iter().min();
        let subject = key.map(|key| Subject::new(key, more, self.kind));
        self.engine.observed.events.record(subject, what);
    }
}

impl Term<'_> {
    /// Returns how long it lasted.
    pub(crate) fn end(mut self, how: TermEnd) -> Duration {
        self.note_end(how)
    }

    fn note_end(&mut self, how: TermEnd) -> Duration {
        self.ended = true;
        let now = self.candidate.engine.clock.now();
        let lasted = now.saturating_duration_since(self.began);
        if let Some(key) = self.keys.first() {
            tracing::info!(
                key = %key.shortened(), ?lasted, end = how.as_str(),
                "this process does not lead any more"
            );
        }
        let ended = What::TermEnded { lasted, how };
        self.candidate.record(self.keys, ended);
        lasted
    }
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.note_end(TermEnd::Dropped);
        }
    }
}
