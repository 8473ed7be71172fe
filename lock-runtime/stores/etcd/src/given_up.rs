//! Operations go on when nobody polls them, and begin nothing when their caller has given them up.
//!
//! The engine undoes an operation that was dropped. What undoes it waits until the calls of its
//! owner are over ([`OwnerFlight`]). So nothing may begin after the drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_store::Owner;
use lock_store::ordered::OperationProgress;

use crate::connection::{Live, OwnerFlight};
use crate::errors::Fault;
use crate::store::Carried;

/// Whether the caller of an operation has given it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    /// Begins what an operation does for these owners, unless nobody wants it any more.
    pub(crate) async fn begin(
        &self,
        live: &Arc<Live>,
        owners: Vec<Owner>,
    ) -> Carried<Arc<OwnerFlight>> {
        let flight = live.begin(owners).await;
        match self.0.load(Ordering::Acquire) {
            false => Ok(Arc::new(flight)),
            true => Err(Fault::GivenUp),
        }
    }
}

impl OperationProgress for GivenUp {
    fn give_up(&self) {
        self.0.store(true, Ordering::Release);
    }
}
