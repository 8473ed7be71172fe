//! What a guard makes of its hold while it lasts: longer, or a reader's.

use std::time::Duration;

use super::Guard;
use crate::error::LockError;

impl Guard {
    /// Lets the hold last at least `lease` from now (10 ms to 24 h). Never asks for a shorter
    /// lease; but the store may say that the hold can be trusted for less.
    ///
    /// # Errors
    /// - [`LockError::Config`]: a lease outside its limits, or beyond `max_hold`.
    /// - [`LockError::Lost`]: the hold is gone.
    /// - [`LockError::Unavailable`]: the store refused, or did not answer within the command
    ///   timeout. The hold lasts as long as before, or longer. If the store has said that one of
    ///   several keys can be trusted for less, it ends that early:
    ///   [`remaining`](Self::remaining) counts that.
    ///
    /// # Cancel safety
    /// If the future is dropped, the extension may or may not have happened.
    /// [`remaining`](Self::remaining) never counts one whose answer was not seen.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let guard = client.lock("k").lease(Duration::from_secs(5)).acquire().await?;
    /// guard.extend(Duration::from_secs(60)).await?;
    /// assert!(guard.remaining() > Duration::from_secs(55));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn extend(&self, lease: Duration) -> Result<(), LockError> {
        if let Some(reason) = self.loss() {
            return Err(self.lost_error(reason));
        }
        let extended = self.engine.extend(&self.hold, lease).await;
        extended.map_err(|error| self.named(error))
    }

    /// Turns a write hold into a read hold: other readers may enter, and no writer comes between.
    ///
    /// From the call on, this guard is a reader's only. For the guard of a reader, nothing changes.
    ///
    /// # Errors
    /// - [`LockError::Config`]: the guard is of another kind of lock, shares the hold of its call
    ///   chain, or lends it to a nested writer.
    /// - [`LockError::Lost`]: the hold is gone.
    /// - [`LockError::Unavailable`]: the store did not answer within the command timeout. Other
    ///   readers may have to wait until the release, or until this is called again.
    ///
    /// # Cancel safety
    /// If the future is dropped, this guard is a reader's. Other readers may have to wait until its
    /// release.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let client = lock_runtime::LockClient::in_memory();
    /// let prices = client.rw_lock("prices");
    /// let guard = prices.write().await?;
    /// guard.downgrade().await?;
    /// assert!(prices.read().try_acquire().await?.is_some());
    /// assert!(prices.write().try_acquire().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn downgrade(&self) -> Result<(), LockError> {
        if self.is_nested() {
            return Err(LockError::config(
                "this guard shares the write lock of its call chain, which the outer body still \
                 counts on; downgrade the outer guard",
            ));
        }
        // No nested writer uses the hold now, and none will: what waits for its turn asks again
        // what the hold is.
        let Some(_readers) = self.nested_gate().enter_now(true) else {
            return Err(LockError::config(
                "a nested request shares this write lock and still writes under it; let it finish \
                 before the downgrade",
            ));
        };
        self.engine.downgrade(&self.hold).await
    }
}
