//! Whether the store answers: what tells "busy" from "dead".
//!
//! All requests of a client note here what their commands came to. When a request stops waiting,
//! and with which error, is decided in `busy_or_unavailable`.

pub(super) mod busy_or_unavailable;
pub(crate) mod key;

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Clock, Failure, Instant, LockKey, Mutex, Replied, Store, StoreError, StoreErrorKind,
};
use tokio::sync::Notify;

use super::timing;

/// When the store last answered, and what it last failed with: to all requests of a client, or to
/// those that wait for one latch.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// That of the client, if this is of one latch.
    of_client: Option<Arc<Self>>,
    clock: Clock,
    command_timeout: Duration,
    state: Mutex<LivenessState>,
    /// Something was noted.
    changed: Notify,
}

/// Commands have failed in a row: since the sending of the first, and with what error the last.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    pub(crate) since: Instant,
    pub(crate) error: StoreError,
}

/// What the store has said of a key since some time.
#[derive(Debug)]
pub(crate) enum Said {
    /// The store has said that it is taken.
    Taken,
    /// The store answers, and has not said so. It may have refused a command before the request
    /// came.
    Alive { refused_before: Option<StoreError> },
    /// The store answers, and has let nobody of this client at the key.
    Contended(StoreError),
    /// The store does not answer, or refuses.
    Failing(StoreError),
}

#[derive(Debug, Default)]
struct LivenessState {
    answered: Option<Instant>,
    /// Send time of the first command without an answer after the last one that had one, and when
    /// the last such command was noted.
    silent: Option<(Instant, Instant)>,
    failed: Option<(Instant, StoreError)>,
    /// A look at the latch is under way. One at a time; everyone shares its answer.
    asking: bool,
}

impl Liveness {
    pub(crate) fn new(clock: Clock, command_timeout: Duration) -> Self {
        Self {
            of_client: None,
            clock,
            command_timeout,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// For what is said of one latch. The client's is told all of it.
    pub(crate) fn of_latch(client: &Arc<Self>) -> Self {
        Self {
            of_client: Some(Arc::clone(client)),
            ..Self::new(client.clock.clone(), client.command_timeout)
        }
    }

    /// Notes what a command sent at `sent` came to. A refusal proves that the store is alive,
    /// except `Denied`: without permission we cannot tell whether a key is busy. To the client that
    /// is no failure either: there may be a right to another key.
    pub(crate) fn note<T>(&self, sent: Instant, result: &Replied<T>) {
        if let Some(client) = &self.of_client {
            client.note(sent, result);
        }
        // The clock is read where something is silent only.
        let stood_still = || timing::stood_still(sent, self.clock.now(), self.command_timeout);
        if is_own_silence(result, stood_still) {
            return;
        }
        let mut state = self.state.lock();
        if state.answered <= Some(sent) || result.is_ok() {
            let before = self.lasting(&state).map(|(since, _)| since);
            let since = silent_since(before, sent, result);
            state.silent = since.map(|since| (since, self.clock.now()));
        }
        match result {
            Err(failure) if is_denied(failure) && self.of_client.is_none() => {}
            Err(failure) if is_silence(&failure.error) || is_denied(failure) => {
                state.failed = Some((self.clock.now(), failure.error.clone()));
            }
            _ => state.answered = state.answered.max(Some(sent)),
        }
    }

    /// Notes the outcome of a command that had time until `by`. A failure after very little time
    /// says nothing about the store, and is not noted.
    pub(crate) fn note_by<T>(&self, sent: Instant, by: Instant, result: &Replied<T>) {
        if result.is_ok() || !timing::is_cut(sent, by, self.command_timeout) {
            self.note(sent, result);
        }
    }

    /// Since when nothing was heard of the store, if commands are not answered, and when the last
    /// of them was noted.
    pub(crate) fn silence(&self) -> Option<(Instant, Instant)> {
        self.lasting(&self.state.lock())
    }

    /// A silence that nobody has met for a while says nothing of now.
    fn lasting(&self, state: &LivenessState) -> Option<(Instant, Instant)> {
        let lasts = timing::silence_lasts(self.command_timeout);
        let is_recent = |noted: Instant| self.clock.now() <= noted + lasts;
        state.silent.filter(|(_, noted)| is_recent(*noted))
    }

    /// Send time of the last command that was answered.
    pub(crate) fn answered(&self) -> Option<Instant> {
        self.state.lock().answered
    }

    /// Ok if the store has answered a command sent at `since` or later, with no failure after it,
    /// or answers a look at the latch by `by`.
    pub(crate) async fn check(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        latch: &LockKey,
        since: Instant,
        by: Instant,
    ) -> Result<(), StoreError> {
        let mut asked = false;
        let verdict = async {
            loop {
                let changed = self.changed.notified();
                let ask = {
                    let mut state = self.state.lock();
                    let failed = state.failed.as_ref().map(|(at, _)| *at);
                    if state
                        .answered
                        .is_some_and(|at| at >= since && failed.is_none_or(|failed| failed < at))
                    {
                        return Ok(());
                    }
                    if let Some((at, error)) = &state.failed
                        && asked
                        && *at >= since
                    {
                        return Err(error.clone());
                    }
                    !std::mem::replace(&mut state.asking, true)
                };
                if ask {
                    asked = true;
                    // On the client's own runtime: the task that waits for the answer may stop
                    // polling.
                    let asks = Arc::clone(self).ask(Arc::clone(store), latch.clone());
                    self.clock.spawn(asks);
                }
                changed.await;
                asked = true;
            }
        };
        match self.clock.by(by, verdict).await {
            Some(verdict) => verdict,
            None => Err(self.last_failure(since)),
        }
    }

    async fn ask(self: Arc<Self>, store: Arc<dyn Store>, latch: LockKey) {
        let sent = self.clock.now();
        let result = store.latch_look(latch, sent + self.command_timeout).await;
        self.note(sent, &result);
        self.state.lock().asking = false;
        self.changed.notify_waiters();
    }

    /// What the store failed with since then.
    pub(crate) fn last_failure(&self, since: Instant) -> StoreError {
        let failed = self
            .state
            .lock()
            .failed
            .clone()
            .filter(|(at, _)| *at >= since);
        failed.map_or_else(
            || StoreError::new(StoreErrorKind::Timeout, "it does not answer"),
            |(_, error)| error,
        )
    }
}

/// Since when there is silence, after a command that was sent then.
fn silent_since<T>(before: Option<Instant>, sent: Instant, result: &Replied<T>) -> Option<Instant> {
    match result {
        Err(failure) if is_silence(&failure.error) => before.or(Some(sent)),
        // A refusal is an answer.
        _ => None,
    }
}

/// Whether there was no answer, and this process stood still meanwhile.
fn is_own_silence<T>(result: &Replied<T>, stood_still: impl FnOnce() -> bool) -> bool {
    matches!(result, Err(failure) if is_silence(&failure.error)) && stood_still()
}

fn is_denied(failure: &Failure) -> bool {
    failure.error.kind() == StoreErrorKind::Denied
}

/// Whether nothing at all was heard of the store.
pub(super) fn is_silence(error: &StoreError) -> bool {
    matches!(
        error.kind(),
        StoreErrorKind::Disconnected | StoreErrorKind::Timeout
    )
}

#[cfg(all(test, feature = "test-util"))]
mod tests;
