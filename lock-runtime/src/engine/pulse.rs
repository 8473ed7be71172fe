//! When the store last answered, and what it last failed with: what tells "busy" from "dead".

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::store::{Answer, Failure, Store};

/// Shared by all requests of a client.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Clock,
    state: Mutex<State>,
    /// One request at a time asks the store for a sign of life; the others share its answer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    answered: Option<Instant>,
    failed: Option<(Instant, StoreError)>,
    /// What the last acquire was refused with, while the store answers other commands.
    refusing: Option<StoreError>,
}

impl Pulse {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: Mutex::default(),
            asking: tokio::sync::Mutex::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what a command sent at `sent` came to.
    pub(crate) fn note<T>(&self, sent: Instant, result: &Result<Answer<T>, Failure>) {
        let mut state = self.state();
        match result {
            Ok(_) => state.answered = state.answered.max(Some(sent)),
            Err(failure) => state.failed = Some((self.clock.now(), failure.error.clone())),
        }
    }

    /// The same for an acquire, which can be refused (out of memory, read-only) by a store that is alive.
    pub(crate) fn note_acquire<T>(&self, sent: Instant, result: &Result<Answer<T>, Failure>) {
        self.note(sent, result);
        self.state().refusing = result.as_ref().err().map(|failure| failure.error.clone());
    }

    /// What acquires are refused with, if the last one was.
    pub(crate) fn refusing(&self) -> Option<StoreError> {
        self.state().refusing.clone()
    }

    /// When the last command was sent that was answered.
    pub(crate) fn answered(&self) -> Option<Instant> {
        self.state().answered
    }

    /// Whether a command sent at `since` or later was answered, and none has failed after it.
    fn is_alive(&self, since: Instant) -> bool {
        let state = self.state();
        let failed = state.failed.as_ref().map(|(at, _)| *at);
        state
            .answered
            .is_some_and(|at| at >= since && failed.is_none_or(|failed| failed < at))
    }

    /// Ok if the store has answered a command sent at `since` or later, or answers one by `by`.
    pub(crate) async fn check(
        &self,
        store: &Arc<dyn Store>,
        since: Instant,
        by: Instant,
    ) -> Result<(), StoreError> {
        let asked = async {
            if self.is_alive(since) {
                return Ok(());
            }
            let _asking = self.asking.lock().await;
            if self.is_alive(since) {
                return Ok(());
            }
            let sent = self.clock.now();
            let result = store.ping(by).await;
            self.note(sent, &result);
            result.map(|_| ()).map_err(|failure| failure.error)
        };
        match self.clock.by(by, asked).await {
            Some(outcome) => outcome,
            None => Err(self.last_failure()),
        }
    }

    /// What the store last failed with.
    pub(crate) fn last_failure(&self) -> StoreError {
        let failed = self.state().failed.clone();
        failed.map_or_else(
            || StoreError::new(StoreErrorKind::Timeout, "it does not answer"),
            |(_, error)| error,
        )
    }
}
