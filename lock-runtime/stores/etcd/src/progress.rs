//! Operations go on when nobody polls them, and begin nothing when their caller has given them up.
//!
//! The engine undoes an operation that was dropped. What undoes it waits until the calls of its
//! owner are over ([`OwnerFlight`]). So nothing may begin after the drop.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use lock_store::Owner;
use lock_store::ordered::OperationProgress;

use crate::connection::{Live, OwnerFlight, TxnOutcome};
use crate::errors::Fault;
use crate::store::Carried;

/// What the attempts of one operation have in common: whether its caller has given it up, and what
/// may be at the servers of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptsProgress(Arc<AcquireProgress>);

#[derive(Debug, Default)]
struct AcquireProgress {
    is_given_up: AtomicBool,
    /// How many transactions may have made something, or have found what was made.
    made: AtomicU32,
}

impl AttemptsProgress {
    /// Begins what an operation does for these owners, unless nobody wants it any more.
    pub(crate) async fn begin(
        &self,
        live: &Arc<Live>,
        owners: Vec<Owner>,
    ) -> Carried<Arc<OwnerFlight>> {
        let flight = live.begin(owners).await;
        match self.0.is_given_up.load(Ordering::Acquire) {
            false => Ok(Arc::new(flight)),
            true => Err(Fault::GivenUp),
        }
    }

    /// Something of the operation is there, or may be.
    pub(crate) fn note_may_have_made(&self) {
        self.0.made.fetch_add(1, Ordering::AcqRel);
    }

    /// Carries out a transaction that makes something if its conditions are true.
    pub(crate) async fn make(
        &self,
        txn: impl Future<Output = Carried<TxnOutcome>>,
    ) -> Carried<TxnOutcome> {
        self.note_may_have_made();
        let outcome = txn.await;
        let has_made_nothing = match &outcome {
            Ok(outcome) => !outcome.succeeded,
            Err(Fault::Refused(status)) => !status.may_be_carried_out(),
            Err(_) => false,
        };
        if has_made_nothing {
            self.0.made.fetch_sub(1, Ordering::AcqRel);
        }
        outcome
    }
}

impl OperationProgress for AttemptsProgress {
    fn give_up(&self) {
        self.0.is_given_up.store(true, Ordering::Release);
    }

    fn may_have_made(&self) -> bool {
        self.0.made.load(Ordering::Acquire) > 0
    }
}
