//! Asking a rate limiter: one command, and the sleep that it says.

use std::time::Duration;

use lock_store::{RateRequest, Rated, Wish};

use super::Engine;
use super::errors::{malformed, unavailable};
use super::timing::{Budget, Retry};
use crate::config::Wait;
use crate::error::{KeyKind, LockError};

/// What a rate limiter said.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RateOutcome {
    /// The tokens are taken, and the delay is over.
    Passed { left: u32 },
    /// Nothing was taken.
    Limited { retry_after: Duration },
}

impl Engine {
    /// Takes the tokens if they become free within the wait, and sleeps until then.
    pub(crate) async fn take_tokens(&self, request: RateRequest) -> Result<RateOutcome, LockError> {
        let closed = self.closed.notified();
        self.check_key_and_client(&request.key)?;
        self.check_wish(match request.window {
            Some(_) => Wish::ExactRate,
            None => Wish::Rate,
        })?;
        tokio::select! {
            biased;
            () = closed => Err(LockError::Shutdown),
            outcome = self.ask_for_tokens(request) => outcome,
        }
    }

    async fn ask_for_tokens(&self, mut request: RateRequest) -> Result<RateOutcome, LockError> {
        let wait = request.wait;
        let budget = Budget::new(self.clock.now(), Wait::For(wait), &self.defaults);
        let ends = budget.started + wait;
        let mut retry = Retry::default();
        loop {
            let sent = self.clock.now();
            request.wait = ends.saturating_duration_since(sent);
            let by = budget.command_by(sent, budget.latest_end(None)).max(sent);
            let result = self.store.rate(request.clone(), by).await;
            self.liveness.note_by(sent, by, &result);
            match result.map(|answer| answer.value) {
                Ok(Rated::Passed { delay, .. }) if delay > request.wait => {
                    let wait = request.wait;
                    let error = malformed(format!(
                        "it let a call pass after {delay:?} that waits for {wait:?} at most"
                    ));
                    return Err(unavailable(Some(&request.key), error));
                }
                Ok(Rated::Passed { delay, left }) => {
                    // From now, not from the sending: nobody passes before the store's own clock
                    // says so.
                    let passes_at = self.clock.now() + delay;
                    if passes_at > budget.latest_end(None) {
                        // The reply took too long. The tokens are gone: fewer pass than could.
                        return Ok(RateOutcome::Limited { retry_after: delay });
                    }
                    if !delay.is_zero() {
                        self.clock.sleep_until(passes_at).await;
                    }
                    return Ok(RateOutcome::Passed { left });
                }
                Ok(Rated::Limited { retry_after }) => {
                    return Ok(RateOutcome::Limited { retry_after });
                }
                Ok(Rated::Conflict) => {
                    return Err(LockError::key_conflict(request.key, KeyKind::Unknown));
                }
                Err(failure) => {
                    let again = retry.again_at(self.clock.now());
                    // What may have been carried out is never repeated: it would take the tokens
                    // twice.
                    let repeatable =
                        failure.unknown.is_none() && failure.error.kind().is_transient();
                    let ends = budget.cut_by_silence(ends, self.silent_since());
                    if !repeatable || again >= ends {
                        return Err(unavailable(Some(&request.key), failure.error));
                    }
                    self.clock.sleep_until(again).await;
                }
            }
        }
    }
}
