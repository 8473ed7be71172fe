//! How a client becomes a view of itself: another namespace or other defaults, over the same thread
//! and connections.

use std::time::Duration;

use lock_store::Namespace;

use super::LockClient;
use super::view::{View, ViewNamespace};
use crate::config::FAR;

impl LockClient {
    /// The same client in another namespace, such as one for each tenant.
    ///
    /// A view is cheap. It shares the client's thread, connections, watchdog, counters and
    /// [`shutdown`](Self::shutdown), which ends all of them. It has the same locks, semaphores,
    /// latches and rate limiters as a client that was built with this namespace. A request in a
    /// view shares no hold of the same key in another namespace. A view of a view is in the
    /// namespace that was named last: namespaces do not nest.
    ///
    /// A namespace has letters, digits, `-`, `_` and `.`, at most 128 bytes of UTF-8. With any
    /// other, each key is [`LockError::InvalidKey`](crate::LockError::InvalidKey). Where the store
    /// knows rights, the client's user needs them for each namespace.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// let client = lock_runtime::LockClient::in_memory();
    /// let (acme, other) = (client.namespaced("acme"), client.namespaced("other"));
    /// let guard = acme.lock("stock:42").acquire().await?;
    /// assert!(other.lock("stock:42").try_acquire().await?.is_some());
    /// assert!(acme.lock("stock:42").try_acquire().await?.is_none());
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn namespaced(&self, namespace: &str) -> Self {
        let namespace = match Namespace::new(namespace) {
            Ok(namespace) if namespace == *self.engine.namespace() => ViewNamespace::OfClient,
            Ok(namespace) if self.engine.tells_namespaces_apart() => {
                ViewNamespace::Other(namespace)
            }
            Ok(_) | Err(_) => ViewNamespace::Bad,
        };
        self.viewed(|view| view.namespace = namespace)
    }

    /// The same client with another wait for requests that give none. How long
    /// [`wait_forever`](crate::Lock::wait_forever) waits for a silent store stays the client's own
    /// wait.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// let client = lock_runtime::LockClient::in_memory();
    /// let (jobs, pages) = (client.clone(), client.with_wait(Duration::from_millis(50)));
    /// let guard = jobs.lock("report").acquire().await?;
    /// assert!(pages.lock("report").acquire().await.is_err_and(|error| error.is_busy()));
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_wait(&self, wait: Duration) -> Self {
        self.viewed(|view| view.wait = Some(wait.min(FAR)))
    }

    /// The same client with another lease for requests that give none; it is renewed each third.
    /// Outside 10 ms to 24 h, such requests are [`LockError::Config`](crate::LockError::Config).
    #[must_use]
    pub fn with_lease(&self, lease: Duration) -> Self {
        self.viewed(|view| view.lease = Some(lease))
    }

    fn viewed(&self, change: impl FnOnce(&mut View)) -> Self {
        let mut client = self.clone();
        change(&mut client.view);
        client
    }
}
