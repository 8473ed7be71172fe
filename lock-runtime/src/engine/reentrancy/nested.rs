//! Nested requests: they use the hold of their call chain, one at a time, or readers together.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Instant, LockKey, Permits};

use super::call_chain::Frame;
use super::gate::{NestedGate, NestedPermit};
use crate::config::{FAR, Resolved};
use crate::engine::Engine;
use crate::engine::hold::Hold;
use crate::engine::local_queue::{Doing, LocalQueue, QueuedRequest, Waiter};
use crate::engine::timing::Budget;
use crate::error::{HeldBy, KeyKind, LockError};

/// The result of a request: a hold of its own, or the use of its call chain's hold.
#[derive(Debug)]
pub(crate) enum OwnOrNested {
    Own(Arc<Hold>),
    Nested(NestedPermit),
}

/// What a request got, when, and how long it waited for it.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) held: OwnOrNested,
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
    ) -> Result<OwnOrNested, LockError> {
        let gate = frame.gate();
        let hold = gate.hold();
        let key = self.check_nested(gate, keys, options)?;
        let permit = self.pass_gate(gate, key, options, &budget).await?;
        gate.check(key)?;
        // It may have been downgraded while this waited.
        self.check_nested(gate, keys, options)?;
        if options.fenced {
            // Once the hold is over, a token would be one of its successor.
            tokio::select! {
                biased;
                error = gate.until_lost(key) => return Err(error),
                fenced = self.fence_nested(hold, keys, &budget) => fenced?,
            }
            gate.check(key)?;
        }
        hold.keep_at_least(self.clock.now(), options.kept_always());
        Ok(OwnOrNested::Nested(permit))
    }

    async fn fence_nested(
        &self,
        hold: &Hold,
        keys: &[LockKey],
        budget: &Budget,
    ) -> Result<(), LockError> {
        for part in keys.iter().filter_map(|key| hold.find(self.id(), key)) {
            let part = &hold.parts()[part];
            if part.token().is_none() {
                self.fence(hold, part, budget).await?;
            }
        }
        Ok(())
    }

    /// Whether a request inside of a hold can use it. The key that messages name: one of those that
    /// are held already.
    fn check_nested<'k>(
        &self,
        gate: &'k NestedGate,
        keys: &'k [LockKey],
        options: &Resolved,
    ) -> Result<&'k LockKey, LockError> {
        let hold = gate.hold();
        let held = keys.iter().find(|key| hold.find(self.id(), key).is_some());
        let key = held.unwrap_or(hold.key());
        match (hold.permits(), options.permits) {
            (None, None) => {}
            // The number of permits that there are is each request's own matter.
            (Some(has), Some(wants)) if has.is_read_write() == wants.is_read_write() => {
                // A reader that waits for the readers waits for itself, for ever. One inside of a
                // writer does so, too: it has readers beside it.
                let writes_as_a_reader =
                    wants.is_read_write() && wants != Permits::READ && gate.is_of_a_reader();
                if wants.count > has.count || writes_as_a_reader {
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
        Ok(key)
    }

    /// Waits until no sibling uses the hold.
    async fn pass_gate(
        &self,
        gate: &Arc<NestedGate>,
        key: &LockKey,
        options: &Resolved,
        budget: &Budget,
    ) -> Result<NestedPermit, LockError> {
        let shared = options.permits == Some(Permits::READ);
        if let Some(permit) = gate.enter_now(shared) {
            return Ok(permit);
        }
        let closed = self.closed.notified();
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        let permit = async {
            tokio::select! {
                biased;
                error = gate.until_lost(key) => Err(error),
                () = closed => Err(LockError::Shutdown),
                permit = self.wait_at_gate(gate, shared, budget) => Ok(permit),
            }
        };
        let permit = match budget.end() {
            None => Some(permit.await),
            Some(ends) => self.clock.by(ends, permit).await,
        };
        permit.unwrap_or_else(|| {
            Err(LockError::Busy {
                key: key.clone(),
                held_by: HeldBy::ThisClient,
                waited: self.clock.now().saturating_duration_since(budget.started),
            })
        })
    }

    /// Waits behind those that came before. One that nobody polls goes on from the end.
    async fn wait_at_gate(
        &self,
        gate: &Arc<NestedGate>,
        shared: bool,
        budget: &Budget,
    ) -> NestedPermit {
        let queue = gate.queue();
        let mut waiter = self.join_gate(gate, queue, budget);
        loop {
            if waiter.signal.take().skipped {
                waiter = self.join_gate(gate, queue, budget);
            }
            if waiter.standing().is_first
                && let Some(permit) = gate.enter(shared)
            {
                return permit;
            }
            waiter.signal.notified().await;
        }
    }

    fn join_gate(&self, gate: &NestedGate, queue: &Arc<LocalQueue>, budget: &Budget) -> Waiter {
        let hold = gate.hold();
        let request = QueuedRequest {
            owner: hold.parts()[0].owner,
            permits: hold.permits(),
            lease: hold.lease,
            since: budget.started,
        };
        let ends = budget.end().unwrap_or(budget.started + FAR);
        let queues = &self.local_queues;
        let waiter = queues.join_apart(queue, request, Doing::Sleeps(ends));
        queues.put_on_patrol(queue);
        waiter
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
