//! Operations go on when nobody polls them, and begin nothing when their caller has given them up.
//!
//! The engine undoes an operation that was dropped. What undoes it waits until the calls of its
//! owner are over ([`OwnerFlight`]). So nothing may begin after the drop.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_store::ordered::in_a_task;
use lock_store::{Answer, Failure, Owner, StoreFuture};

use crate::connection::{Live, OwnerFlight};
use crate::errors::Fault;
use crate::store::{Carried, EtcdStore};

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

impl EtcdStore {
    /// Carries an operation out in a task of the client.
    pub(crate) fn in_a_task<T, F>(&self, operation: impl FnOnce(GivenUp) -> F) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Answer<T>, Failure>> + Send + 'static,
    {
        let given_up = GivenUp::default();
        let running = operation(given_up.clone());
        let give_up = move || given_up.0.store(true, Ordering::Release);
        in_a_task(&self.session.connecting, give_up, running)
    }
}
