//! [`Faults`]: what a test does to the store of its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_store::memory::{Intruder, MemoryStore};
use lock_store::{Claim, LockKey, Owner, StoreErrorKind};

use super::faulty_store::{self, ANOTHER, Behaviour, Instructions};
use crate::client::{LockClient, LockClientBuilder};
use crate::config::DEFAULT_NAMESPACE;

/// Breaks the store of a [client with faults](LockClient::in_memory_with_faults), until told
/// otherwise.
///
/// # Examples
/// What does a service do when its lock is lost?
/// ```
/// # use std::future::pending;
/// # use lock_runtime::{LockClient, LockError, distributed_lock};
/// #[distributed_lock(key = "report")]
/// async fn report() -> Result<(), LockError> {
///     pending().await // its work
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let (client, faults) = LockClient::in_memory_with_faults();
/// let (reported, met) = tokio::join!(client.scope(report()), async { faults.lose("report") });
/// assert!(met, "it was held");
/// assert!(reported.is_err_and(|error| error.is_lost() && !error.body_ended()));
///
/// let other = faults.held_by_another("report");
/// let reported = client.with_wait(std::time::Duration::ZERO).scope(report()).await;
/// assert!(reported.is_err_and(|error| error.is_busy()));
/// # drop(other);
/// # }
/// ```
#[derive(Clone)]
pub struct Faults {
    client: LockClient,
    told: Arc<Instructions>,
    another: Arc<Another>,
}

/// Somebody else.
struct Another {
    intruder: Intruder,
    requests: AtomicU64,
    told: Arc<Instructions>,
}

impl Faults {
    pub(super) fn of(builder: LockClientBuilder) -> (LockClient, Self) {
        let (memory, told) = (MemoryStore::new(), Arc::<Instructions>::default());
        let (server, heard) = (memory.clone(), Arc::clone(&told));
        let client = builder
            .store(move |context| Ok(faulty_store::connect(&server, context, &heard)))
            .in_this_process();
        let clock = client.engine().clock().clone();
        let another = Another {
            intruder: memory.intruder(DEFAULT_NAMESPACE, ANOTHER, clock),
            requests: AtomicU64::new(0),
            told: Arc::clone(&told),
        };
        let faults = Self {
            client: client.clone(),
            told,
            another: Arc::new(another),
        };
        (client, faults)
    }

    /// The store answers nothing from now on, and carries nothing out.
    ///
    /// A request is then [`Unavailable`](crate::LockError::Unavailable) when its wait has ended,
    /// and after `unavailable_after` (2 s) at the latest. A hold is
    /// [`Lost`](crate::LockError::Lost) when its lease ends.
    pub fn fall_silent(&self) {
        self.set_behaviour(Behaviour::Silent);
    }

    /// The store answers again. A command that is still waited for is carried out.
    pub fn answer(&self) {
        self.set_behaviour(Behaviour::Answers);
    }

    /// The store refuses from now on, for this reason.
    ///
    /// [`OutOfMemory`](StoreErrorKind::OutOfMemory) refuses what takes memory, such as new locks,
    /// as Redis does, and no renewals or releases; [`ReadOnly`](StoreErrorKind::ReadOnly) and
    /// [`NotReplicated`](StoreErrorKind::NotReplicated) refuse these as well. Any other reason
    /// refuses all that is asked, [`health`](LockClient::health) too.
    pub fn refuse(&self, kind: StoreErrorKind) {
        self.set_behaviour(Behaviour::Refuses(kind));
    }

    /// Takes the lock away from whoever has it. Guards of the client that have it are lost now
    /// ([`LostReason::Gone`](crate::LostReason::Gone)), not only at their next renewal. True if it
    /// was held. If not, it came too early or too late, or the key is another one.
    pub fn lose(&self, key: impl Into<LockKey>) -> bool {
        let key = self.client.key(key);
        let was_held = self.another.intruder.free(&key);
        self.client.engine().lose(&key);
        was_held
    }

    /// Somebody else holds this lock exclusively, until the returned value is dropped. If it was
    /// held, it is lost, as by [`lose`](Self::lose). Who waited for it says that it is held by
    /// `somebody-else`.
    pub fn held_by_another(&self, key: impl Into<LockKey>) -> HeldByAnother {
        let request = self.another.requests.fetch_add(1, Ordering::Relaxed);
        let claim = Claim::new(self.client.key(key), Owner::new(ANOTHER, request), None);
        let since = self.client.engine().clock().now();
        let mut held = self.told.held_by_another.lock();
        held.insert(claim.key.clone(), since);
        drop(held);
        self.another.intruder.take(&claim);
        self.client.engine().lose(&claim.key);
        HeldByAnother {
            claim,
            another: Arc::clone(&self.another),
        }
    }

    /// The same faults in another namespace, whose keys `lose` and `held_by_another` then name:
    /// those of [`client.namespaced(…)`](LockClient::namespaced).
    #[must_use]
    pub fn namespaced(&self, namespace: &str) -> Self {
        Self {
            client: self.client.namespaced(namespace),
            ..self.clone()
        }
    }

    fn set_behaviour(&self, behaviour: Behaviour) {
        self.told.behaviour.send_replace(behaviour);
    }
}

/// A lock in the hands of somebody else; see [`Faults::held_by_another`]. Dropping it ends that
/// hold.
#[must_use = "dropping it ends the hold"]
pub struct HeldByAnother {
    claim: Claim,
    another: Arc<Another>,
}

impl Drop for HeldByAnother {
    fn drop(&mut self) {
        let mut held = self.another.told.held_by_another.lock();
        held.remove(&self.claim.key);
        drop(held);
        self.another.intruder.give_back(&self.claim);
    }
}

lock_store::show!(Faults as it: behaviour = *it.told.behaviour.borrow());

lock_store::show!(HeldByAnother as it: key = it.claim.key);
