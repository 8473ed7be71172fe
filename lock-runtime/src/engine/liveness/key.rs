//! What the store has said to the requests of one key. Only the first of them asks; they share its
//! answers. A failure counts only for those that had come when its command was sent: for a later
//! one it may be over. Those that have met the same give up together.

use lock_store::{
    Acquired, Busy, Failure, Holder, Instant, LockFound, Mutex, Replied, StoreError, StoreErrorKind,
};
use tokio::sync::Notify;

use super::{Failing, Said, is_own_silence, is_silence, silent_since};
use crate::engine::timing::FAILURE_LASTS;

/// Shared by all requests of a client that wait for a key.
#[derive(Debug, Default)]
pub(crate) struct KeyLiveness {
    state: Mutex<KeyLivenessState>,
    /// Something was noted.
    changed: Notify,
}

#[derive(Debug, Default)]
struct KeyLivenessState {
    /// Send time of the last command that was answered.
    answered: Option<Instant>,
    /// Send time of the last command after which the key was taken: as the store said, or because
    /// it was granted to a request of this client.
    busy: Option<Instant>,
    /// Send time of the last command that was granted the key, or a share of it.
    granted: Option<Instant>,
    /// Send time of the last command by which a request that had a place in the store's queue asked
    /// again.
    reasked_at: Option<Instant>,
    /// Who had the key by the store's last word.
    holder: Option<Holder>,
    failure: Option<KeyFailure>,
    /// Send time of the last command that lost the race for the key, unless a later one was
    /// answered otherwise.
    contended: Option<(Instant, StoreError)>,
    /// Send time of the first command without an answer after the last one that had one.
    silent_since: Option<Instant>,
    /// A look is under way. One at a time; everyone shares its answer.
    look_under_way: bool,
    /// Counts how often everybody had left.
    era: u64,
}

/// Commands for a key have failed in a row.
#[derive(Debug)]
struct KeyFailure {
    failing: Failing,
    /// Send time of the last of them.
    last: Instant,
}

impl KeyLiveness {
    /// Send time of the last command that was answered.
    pub(crate) fn answered(&self) -> Option<Instant> {
        self.state.lock().answered
    }

    /// Who had the key by the store's last word, if it said so.
    pub(crate) fn holder(&self) -> Option<Holder> {
        self.state.lock().holder
    }

    /// Since when nothing was heard of this key, if commands are not answered, and when the last of
    /// them was sent.
    pub(crate) fn silence(&self) -> Option<(Instant, Instant)> {
        let state = self.state.lock();
        state
            .silent_since
            .zip(state.failure.as_ref().map(|one| one.last))
    }

    /// Whether commands failed lately, and none that was sent since the request came, at `started`.
    pub(crate) fn failed_before(&self, started: Instant, now: impl FnOnce() -> Instant) -> bool {
        let state = self.state.lock();
        let failure = state.failure.as_ref().filter(|one| one.last < started);
        failure.is_some_and(|failure| now() <= failure.last + FAILURE_LASTS)
    }

    /// Whether the key was taken after a command sent at `since` or later.
    pub(crate) fn was_taken(&self, since: Option<Instant>) -> bool {
        let busy = self.state.lock().busy;
        busy.is_some() && busy >= since
    }

    /// How commands fail, if one that was sent at `started` or later has: when the request came.
    pub(crate) fn failing(
        &self,
        started: Instant,
        now: impl FnOnce() -> Instant,
    ) -> Option<Failing> {
        let state = self.state.lock();
        let failure = state.failure.as_ref();
        let failure = failure.filter(|failure| still_counts(failure.last, started, now()));
        failure.map(|failure| failure.failing.clone())
    }

    /// Forgets what was said: nobody waits any more, and later requests must not rely on it.
    pub(crate) fn forget(&self) {
        let mut state = self.state.lock();
        *state = KeyLivenessState {
            look_under_way: state.look_under_way,
            era: state.era + 1,
            ..KeyLivenessState::default()
        };
    }

    /// Send time of the last command that was granted the key, or a share of it.
    pub(crate) fn granted_at(&self) -> Option<Instant> {
        self.state.lock().granted
    }

    /// Send time of the last command that told the store that this client runs: one of a request
    /// that had a place there.
    pub(crate) fn reasked_at(&self) -> Option<Instant> {
        self.state.lock().reasked_at
    }

    /// Notes what an acquire sent at `sent` came to, whether this process stood still meanwhile,
    /// and whether its request had a place in the store's queue.
    pub(crate) fn note(
        &self,
        sent: Instant,
        stood_still: impl FnOnce() -> bool,
        had_place: bool,
        result: &Replied<Acquired>,
    ) {
        if is_own_silence(result, stood_still) {
            return;
        }
        let mut state = self.state.lock();
        if state.answered <= Some(sent) || result.is_ok() {
            state.silent_since = silent_since(state.silent_since, sent, result);
        }
        match result {
            Ok(answer) => {
                if had_place {
                    state.reasked_at = state.reasked_at.max(Some(sent));
                }
                state.answered = state.answered.max(Some(sent));
                (state.failure, state.contended) = (None, None);
                match answer.value {
                    Acquired::Busy(Busy { holder, .. }) => state.holder = holder,
                    Acquired::Granted(_) => state.granted = state.granted.max(Some(sent)),
                    Acquired::Conflict => {}
                }
                if !matches!(answer.value, Acquired::Conflict) {
                    state.busy = state.busy.max(Some(sent));
                }
            }
            Err(failure) if failure.error.kind() == StoreErrorKind::Contended => {
                state.answered = state.answered.max(Some(sent));
                state.failure = None;
                state.contended = Some((sent, failure.error.clone()));
            }
            Err(failure) => state.note_failure(sent, failure),
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Notes what a look at the key came to that was called for in that era, and whether silence
    /// would say nothing of the store.
    pub(crate) fn note_look(
        &self,
        era: u64,
        sent: Instant,
        silence_says_nothing: bool,
        result: &Replied<Option<LockFound>>,
    ) {
        let mut state = self.state.lock();
        state.look_under_way = false;
        if state.era == era
            && !is_own_silence(result, || silence_says_nothing)
            && (state.answered <= Some(sent) || result.is_ok())
        {
            state.silent_since = silent_since(state.silent_since, sent, result);
        }
        match result {
            _ if state.era != era || is_own_silence(result, || silence_says_nothing) => {}
            Ok(answer) => {
                state.answered = state.answered.max(Some(sent));
                // A store that refuses to lend a key may answer a question about it.
                let silence = |failure: &mut KeyFailure| is_silence(&failure.failing.error);
                state.failure.take_if(silence);
                let found = answer.value.as_ref();
                if let Some(holder) = found.and_then(|found| found.holder.as_ref()) {
                    state.holder = Some(holder.who());
                    state.busy = state.busy.max(Some(sent));
                }
            }
            Err(failure) => state.note_failure(sent, failure),
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// What is known of the key since then, or that commands fail that were sent at `started` or
    /// later: when the request came.
    pub(crate) fn said(&self, started: Instant, since: Instant) -> Option<Said> {
        self.state.lock().known(started, since)
    }

    /// [`said`](Self::said). If nothing is known, `look` is called, which has to end in
    /// [`note_look`](Self::note_look); one is under way at a time.
    pub(crate) async fn known(&self, started: Instant, since: Instant, look: impl Fn(u64)) -> Said {
        loop {
            let changed = self.changed.notified();
            let begins = {
                let mut state = self.state.lock();
                if let Some(known) = state.known(started, since) {
                    return known;
                }
                let under_way = std::mem::replace(&mut state.look_under_way, true);
                (!under_way).then_some(state.era)
            };
            if let Some(era) = begins {
                look(era);
            }
            changed.await;
        }
    }
}

impl KeyLivenessState {
    fn known(&self, started: Instant, since: Instant) -> Option<Said> {
        let failure = self.failure.as_ref();
        match failure.filter(|failure| still_counts(failure.last, started, since)) {
            Some(KeyFailure { failing, .. }) => Some(Said::Failing(failing.error.clone())),
            _ if self.busy >= Some(since) => Some(Said::Taken),
            _ => match &self.contended {
                Some((at, error)) if still_counts(*at, started, since) => {
                    Some(Said::Contended(error.clone()))
                }
                _ => (self.answered >= Some(since)).then(|| Said::Alive {
                    refused_before: failure.map(|failure| failure.failing.error.clone()),
                }),
            },
        }
    }

    fn note_failure(&mut self, sent: Instant, failure: &Failure) {
        // A later command was answered: this one was lost.
        if self.answered > Some(sent) {
            return;
        }
        let error = failure.error.clone();
        match &mut self.failure {
            // The news of a later one came first.
            Some(one) if one.last > sent => {}
            Some(one) => (one.failing.error, one.last) = (error, sent),
            None => {
                let failing = Failing { since: sent, error };
                self.failure = Some(KeyFailure {
                    failing,
                    last: sent,
                });
            }
        }
    }
}

/// Whether a failure of a command that was sent at `last` counts for a request of `started`, when
/// it asks about the time from `since` on.
fn still_counts(last: Instant, started: Instant, since: Instant) -> bool {
    last >= started && last + FAILURE_LASTS >= since
}

#[cfg(test)]
mod tests;
