//! [`Shop`]: what the handlers share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_runtime::LockClient;

/// How long the payment provider takes.
const PAYMENT: Duration = Duration::from_millis(1500);

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct Shop {
    locks: LockClient,
    /// Stands for the database: tenants and their orders.
    paid: Arc<Mutex<HashSet<(String, u64)>>>,
    asked: Arc<AtomicUsize>,
}

impl Shop {
    /// A shop without any paid order.
    #[must_use]
    pub fn new(locks: LockClient) -> Self {
        Self {
            locks,
            paid: Arc::default(),
            asked: Arc::default(),
        }
    }

    /// The locks of the shop itself.
    #[must_use]
    pub fn locks(&self) -> &LockClient {
        &self.locks
    }

    /// A tenant's locks: the same client, but no key is shared with another tenant.
    pub(super) fn locks_of(&self, tenant: &str) -> LockClient {
        self.locks.namespaced(tenant)
    }

    /// How many orders are paid.
    #[must_use]
    pub fn paid(&self) -> usize {
        self.database().len()
    }

    /// How often the payment provider was asked for money.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    pub(super) async fn ask_provider(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAYMENT).await;
    }

    pub(super) fn is_paid(&self, tenant: &str, id: u64) -> bool {
        self.database().contains(&(tenant.to_owned(), id))
    }

    pub(super) fn write_down(&self, tenant: String, id: u64) {
        self.database().insert((tenant, id));
    }

    fn database(&self) -> MutexGuard<'_, HashSet<(String, u64)>> {
        self.paid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
