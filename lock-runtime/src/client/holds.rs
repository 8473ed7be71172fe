//! [`HeldLock`]: a lock that a client holds now.

use std::time::Duration;

use lock_store::LockKey;

use super::LockClient;
use crate::observe::LockKind;

/// A lock that a client holds now; see [`LockClient::holds`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldLock {
    /// What is locked, in the order of their names. [`LockKey::template`] says what keys of its
    /// kind are called.
    pub keys: Vec<LockKey>,
    /// What it was granted as.
    pub kind: LockKind,
    /// How long ago it was granted.
    pub held_for: Duration,
    /// How long it can still be trusted if it is not renewed. Zero if it was lost, and its guard is
    /// still there.
    pub remaining: Duration,
}

impl LockClient {
    /// The locks that this client holds, the longest held first: all of its clones and
    /// [views](Self::namespaced). A view [in another layout](Self::with_layout) lists its own. A
    /// nested hold is that of its outer call. Asks nobody, so it works while the store is down.
    ///
    /// # Examples
    /// ```
    /// # use lock_runtime::lock_key;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let product = 42;
    /// let guard = client.lock(lock_key!("stock:<product>")).acquire().await?;
    /// let holds = client.holds();
    /// assert_eq!(holds[0].keys[0].as_str(), "stock:42");
    /// assert_eq!(holds[0].keys[0].template(), Some("stock:<product>"));
    /// guard.release().await?;
    /// assert!(client.holds().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn holds(&self) -> Vec<HeldLock> {
        let now = self.engine.clock().now();
        let mut holds = self.engine.holds();
        holds.sort_by_key(|hold| hold.since);
        let held = holds.iter().map(|hold| HeldLock {
            keys: hold.parts().iter().map(|part| part.key.clone()).collect(),
            kind: hold.kind,
            held_for: now.saturating_duration_since(hold.since),
            remaining: hold.remaining(),
        });
        held.collect()
    }
}
