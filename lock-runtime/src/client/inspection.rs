//! [`Inspection`]: what operators see of a lock, and how they take it away.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{FoundHolder, LockKey};

use super::LockClient;
use crate::api::Revoke;
use crate::error::{HeldBy, LockError};

/// Who holds a lock, and who waits for it; see [`LockClient::inspect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The beginning of the holder's owner token. `None` if the lock is free. The first eight
    /// characters are the same for all locks of one client (its `Debug` shows them), so they tell
    /// clients apart.
    pub holder: Option<String>,
    /// The holder's name. `None` if the lock is free. The holder's client has a quarter of a second
    /// to say it.
    pub held_by: Option<HeldBy>,
    /// How many hold it. More than one only for a read-write lock or a semaphore: `holder` is then
    /// the one with the longest lease.
    pub holders: usize,
    /// How long that holder can still have it without renewing. `None` if the lock is free, or is
    /// held without an end.
    pub remaining: Option<Duration>,
    /// Places in the store's queue. Each process has at most one for each key, unless requests are
    /// fair.
    pub waiting: usize,
    /// Of a semaphore that is held: how many permits are taken.
    pub permits_taken: Option<u32>,
    /// How many are left, of the number that the last request for it said. Requests with another
    /// number count by their own.
    pub permits_left: Option<u32>,
}

/// What people see of a holder: not enough to release its lock.
fn beginning(holder: FoundHolder) -> String {
    let text = match holder {
        FoundHolder::Owner { owner, .. } => owner.to_string(),
        FoundHolder::Foreign(text) => text,
    };
    match text.char_indices().nth(8) {
        Some((at, _)) => format!("{}…", text[..at].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

impl LockClient {
    /// Who holds the key and who waits for it. For people and dashboards: it may have changed when
    /// you read it.
    ///
    /// # Errors
    /// [`LockError::InvalidKey`], [`LockError::KeyConflict`] if the key is no lock,
    /// [`LockError::Unavailable`], [`LockError::Shutdown`].
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").lease(Duration::from_secs(5)).acquire().await?;
    /// let found = client.inspect("k").await?;
    /// assert!(found.holder.is_some() && found.remaining <= Some(Duration::from_secs(5)));
    /// assert_eq!(found.waiting, 0);
    /// let three = client.semaphore("downloads", 5).permits(3).await?;
    /// let found = client.inspect("downloads").await?;
    /// assert_eq!((found.permits_taken, found.permits_left), (Some(3), Some(2)));
    /// # drop((guard, three));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self, key: impl Into<LockKey>) -> Result<Inspection, LockError> {
        let key = self.key(key);
        let found = self.engine.inspect(key.clone()).await?;
        let held_by = match &found.holder {
            Some(holder) => Some(self.engine.identify_holder(&key, holder.who()).await),
            None => None,
        };
        let permits = found.permits.filter(|all| !all.is_read_write());
        Ok(Inspection {
            holder: found.holder.map(beginning),
            held_by,
            holders: found.holders,
            remaining: found.remaining,
            waiting: found.waiting,
            permits_taken: permits.map(|all| all.count),
            permits_left: permits.map(|all| all.of.saturating_sub(all.count)),
        })
    }

    /// Takes the lock from its holders in good order: an operator's tool. Their clients are asked
    /// by a message. Each loses its hold ([`LostReason::Revoked`](crate::LostReason::Revoked)), its
    /// body is stopped, and the lock is released when the body or guard has been dropped: never
    /// while something runs under it. This waits for that until the timeout, and says who did not
    /// answer and who still runs. A body under `on_lost = "continue"`, one that blocks its thread
    /// and a guard in somebody's hands may take long. Until they end, the hold is renewed as
    /// before.
    ///
    /// What is under way at the timeout, messages or a look at the store, is waited for, and then
    /// one more look: each takes `command_timeout` at most.
    ///
    /// All kinds of locks. Of several holders all are asked, or one:
    /// [`Revoke::held_by`]. Those that come later are not. A client can refuse
    /// ([`revocable`](crate::LockClientBuilder::revocable)). A key that stays taken by
    /// `hold_at_least` stays so. Several keys of one hold end together.
    ///
    /// A revocation names the hold by its owner token, as the store shows it. So it needs the right
    /// to read the lock; to publish alone is not enough. What is stopped is stopped for good: the
    /// call returns [`LockError::Lost`], and nobody calls it again.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect). [`LockError::Config`] on an engine that passes no messages
    /// between clients.
    ///
    /// # Cancel safety
    /// If the future is dropped, those that were asked stop all the same.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # use lock_runtime::{LockError, LostReason};
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let report = client.lock("report").run(std::future::pending::<()>());
    /// let revoke = async {
    ///     # while client.inspect("report").await?.holder.is_none() {}
    ///     client.revoke("report", Duration::from_secs(5)).await
    /// };
    /// let (report, revoked) = tokio::join!(report, revoke);
    /// assert!(matches!(report, Err(LockError::Lost { reason: LostReason::Revoked, .. })));
    /// let revoked = revoked?;
    /// if !revoked.is_complete() {
    ///     println!("{revoked}"); // …; orders-7f9c was told, and still runs
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn revoke(&self, key: impl Into<LockKey>, timeout: Duration) -> Revoke {
        Revoke::new(Arc::clone(&self.engine), self.key(key), timeout)
    }

    /// Takes the lock away from its holder, of a semaphore or a read lock from **all** holders, and
    /// hands it to the next in the queue. True if it was held. The last resort, where
    /// [`revoke`](Self::revoke) gets no answer: a holder learns of it at its next renewal, and may
    /// work on until then, beside the next ones.
    ///
    /// If the store does not answer, it may still be carried out later (on Redis whenever the
    /// network delivers it), and then ends whatever hold there is: look with
    /// [`inspect`](Self::inspect) before you repeat it.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not have happened.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").acquire().await?;
    /// assert!(client.force_release("k").await?);
    /// assert!(client.lock("k").try_acquire().await?.is_some());
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn force_release(&self, key: impl Into<LockKey>) -> Result<bool, LockError> {
        self.engine.force_release(self.key(key)).await
    }
}
