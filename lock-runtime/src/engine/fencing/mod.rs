//! The engine's decisions about fencing tokens: how many a request asks for ([`window`]), that they
//! rise ([`rising`]), and the token of a nested call.
//!
//! A token rises with every new hold of a key, and comes with the grant. The type is
//! [`FencingToken`](lock_store::FencingToken).

pub(super) mod rising;
pub(super) mod window;

use lock_store::{Fenced, FencingToken};

use super::Engine;
use super::errors::{malformed, unavailable};
use super::hold::Hold;
use super::hold::part::Part;
use super::timing::{Budget, Retry};
use crate::error::{KeyKind, LockError, LostReason};

impl Engine {
    /// Fetches a token for a hold that has none yet: a nested call is the first that wants one.
    pub(super) async fn fence(
        &self,
        hold: &Hold,
        part: &Part,
        budget: &Budget,
    ) -> Result<(), LockError> {
        // Reserved tokens come first: a token that the store gives now is higher than all of them.
        if let Some(token) = hold.reserved_token() {
            part.set_token(token);
            return Ok(());
        }
        let mut retry = Retry::default();
        loop {
            let sent = self.clock.now();
            let result = self.store.fence(hold.claim(part), self.command_by()).await;
            self.liveness.note(sent, &result);
            match result.map(|answer| answer.value) {
                Ok(Fenced::Token(token)) if FencingToken::is_valid(token) => {
                    part.set_token(token);
                    return Ok(());
                }
                Ok(Fenced::Token(token)) => {
                    let error = malformed(format!("it gave {token} as a fencing token"));
                    return Err(unavailable(Some(&part.key), error));
                }
                Ok(Fenced::Gone) => {
                    hold.lose(LostReason::Gone);
                    self.observed.record_lost(hold, self.clock.now());
                    return Err(LockError::lost(part.key.clone(), LostReason::Gone));
                }
                Ok(Fenced::Conflict) => {
                    let key = part.key.clone();
                    return Err(LockError::key_conflict(key, KeyKind::Unknown));
                }
                Err(failure) => {
                    let transient = failure.error.kind().is_transient();
                    let by = budget.latest_end(None);
                    if !transient || !retry.pause(&self.clock, by).await {
                        return Err(unavailable(Some(&part.key), failure.error));
                    }
                }
            }
        }
    }
}
