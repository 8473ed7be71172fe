//! Nested requests: they use the hold of their call chain, one at a time, or readers together.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Instant, LockKey, Permits};

use super::call_chain::Frame;
use super::gate::{NestedGate, NestedPermit};
use crate::config::{Resolved, Wait};
use crate::engine::Engine;
use crate::engine::hold::Hold;
use crate::engine::timing::Budget;
use crate::error::{HeldBy, KeyKind, LockError, LostReason};

/// The result of a request: a hold of its own, or the use of its call chain's hold.
#[derive(Debug)]
pub(crate) enum Held {
    Own(Arc<Hold>),
    Nested(Arc<Hold>, NestedPermit, NestedGate),
}

/// What a request got, when, and how long it waited for it.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) held: Held,
    pub(crate) since: Instant,
    pub(crate) waited: Duration,
}

impl Engine {
    /// A nested request: no command, unless it is the first to ask for a fencing token.
    pub(in crate::engine) async fn acquire_nested(
        &self,
        frame: &Frame,
        keys: &[LockKey],
        options: &Resolved,
        budget: Budget,
    ) -> Result<Held, LockError> {
        let budget = &budget;
        let hold = frame.hold();
        self.check_nested(hold, keys, options)?;
        let permit = self.pass_gate(frame, options, budget).await?;
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        if hold.ended() {
            return Err(hold.lost_error(LostReason::Gone));
        }
        // It may have been downgraded while this waited.
        self.check_nested(hold, keys, options)?;
        if options.fenced {
            for part in keys.iter().filter_map(|key| hold.find(self.id(), key)) {
                let part = &hold.parts()[part];
                if part.token().is_none() {
                    self.fence(hold, part, budget).await?;
                }
            }
        }
        hold.keep_at_least(options.hold_at_least);
        let gate = Arc::clone(frame.gate());
        Ok(Held::Nested(Arc::clone(hold), permit, gate))
    }

    /// Whether a request inside of a hold can use it.
    fn check_nested(
        &self,
        hold: &Hold,
        keys: &[LockKey],
        options: &Resolved,
    ) -> Result<(), LockError> {
        // The message is about a key that is held already.
        let held = keys.iter().find(|key| hold.find(self.id(), key).is_some());
        let key = held.unwrap_or(hold.key());
        match (hold.permits(), options.permits) {
            (None, None) => {}
            // The number of permits that there are is each request's own matter.
            (Some(has), Some(wants)) if has.is_read_write() == wants.is_read_write() => {
                // A reader that waits for the readers waits for itself, for ever.
                if wants.count > has.count {
                    return Err(LockError::WouldDeadlock { key: key.clone() });
                }
            }
            (has, _) => return Err(LockError::key_conflict(key.clone(), kind(has))),
        }
        // Of several keys all must be held. Otherwise it would wait for the rest while it holds
        // these, in any order.
        let missing = keys.iter().any(|key| hold.find(self.id(), key).is_none());
        if missing || !options.reentrant {
            return Err(LockError::WouldDeadlock { key: key.clone() });
        }
        Ok(())
    }

    /// Waits until no sibling uses the hold.
    async fn pass_gate(
        &self,
        frame: &Frame,
        options: &Resolved,
        budget: &Budget,
    ) -> Result<NestedPermit, LockError> {
        let (hold, gate) = (frame.hold(), frame.gate());
        let shared = options.permits == Some(Permits::READ);
        if let Some(permit) = NestedPermit::now(gate, shared) {
            return Ok(permit);
        }
        let closed = self.closed.notified();
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        let lost = hold.notified();
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        let permit = async {
            tokio::select! {
                biased;
                () = lost => None,
                () = closed => None,
                permit = NestedPermit::wait(gate, shared) => Some(permit),
            }
        };
        let permit = match options.wait {
            Wait::Forever => Some(permit.await),
            Wait::For(wait) => self.clock.by(budget.started + wait, permit).await,
        };
        match permit {
            Some(Some(permit)) => Ok(permit),
            Some(None) if self.is_closing() => Err(LockError::Shutdown),
            Some(None) => Err(hold.lost_error(hold.loss().unwrap_or(LostReason::Expired))),
            None => Err(LockError::Busy {
                key: hold.key().clone(),
                held_by: HeldBy::ThisClient,
                waited: self.clock.now().saturating_duration_since(budget.started),
            }),
        }
    }
}

/// The kind of lock that a hold with these permits is of.
fn kind(permits: Option<Permits>) -> KeyKind {
    match permits {
        None => KeyKind::Exclusive,
        Some(permits) if permits.of == Permits::READ_WRITE => KeyKind::ReadWrite,
        Some(_) => KeyKind::Semaphore,
    }
}
