//! A worker's records of one use of a lock.

use std::time::Duration;

use lock_runtime::{Guard, LockError};

use super::plan::Plan;
use super::worker::Worker;
use crate::history::{Operation, Outcome, Record};
use crate::monotonic_nanos;

/// Writes the records of one use of a lock.
pub(super) struct Log<'w> {
    pub(super) worker: &'w Worker,
    pub(super) plan: &'w Plan,
    pub(super) number: u64,
}

impl Log<'_> {
    /// Records the same for every key.
    pub(super) fn all(
        &self,
        at: u64,
        operation: Operation,
        outcome: Outcome,
        deadline: Option<u64>,
    ) {
        for at_key in 0..self.plan.keys.len() {
            self.one(at_key, at, operation, outcome, None, deadline);
        }
    }

    /// Records the grant, with the guard's tokens or another token.
    pub(super) fn granted(&self, guard: &Guard, instead: Option<u64>) {
        let now = monotonic_nanos();
        // A grant whose deadline has passed is still a grant, and its tokens count.
        let (at, deadline) = trusted(guard).unwrap_or((now, now));
        let tokens = guard.fencing_tokens();
        for at_key in 0..self.plan.keys.len() {
            let own = tokens.as_ref().and_then(|tokens| tokens.get(at_key));
            let token = instead.or(own.map(|token| u64::from(*token)));
            self.one(
                at_key,
                at,
                Operation::Acquire,
                Outcome::Ok,
                token.filter(|_| self.plan.fenced),
                Some(deadline),
            );
        }
    }

    fn one(
        &self,
        at_key: usize,
        at: u64,
        operation: Operation,
        outcome: Outcome,
        token: Option<u64>,
        deadline: Option<u64>,
    ) {
        let (key, kind) = self.plan.keys[at_key];
        self.worker.recorder.record(&Record {
            at,
            process: self.worker.process,
            attempt: self.number,
            key: key.to_owned(),
            kind,
            operation,
            outcome,
            token,
            deadline,
        });
    }
}

/// The present time, and until when a guard is trusted; `None` if it is not.
pub(super) fn trusted(guard: &Guard) -> Option<(u64, u64)> {
    loop {
        let before = monotonic_nanos();
        let remaining = guard.remaining();
        let after = monotonic_nanos();
        if remaining.is_zero() {
            return None;
        }
        // If the process was stopped in between, the two times do not belong together.
        if after - before < 1_000_000 {
            return Some((before, before + nanos(remaining)));
        }
    }
}

pub(super) fn released<T>(result: &Result<T, LockError>) -> Outcome {
    match result {
        Ok(_) => Outcome::Ok,
        Err(LockError::Lost { .. }) => Outcome::Failed,
        Err(_) => Outcome::Unknown,
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
