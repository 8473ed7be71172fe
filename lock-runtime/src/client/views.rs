//! How a client becomes a view of itself: another namespace or other defaults, over the same thread
//! and connections; or another layout, over others.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Layout, Namespace};

use super::LockClient;
use super::view::{View, ViewNamespace};
use crate::config::FAR;
use crate::error::LockError;

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
        let named = Namespace::new(namespace).map_or(ViewNamespace::Bad, ViewNamespace::Named);
        self.viewed(|view| view.namespace = named)
    }

    /// The same client with its keys in another [layout](crate::guide::migration), such as those of
    /// Redisson's locks beside its own.
    ///
    /// A key of one layout and the same key of another are two locks: they neither exclude nor
    /// share each other, in the store and in this process. The namespace of the view stays. If none
    /// was named, it is the layout's: `lock` for this library's own and Curator's, and none for
    /// another. In one and the same namespace, both locks may have one name in the store: who comes
    /// second gets [`KeyConflict`](crate::LockError::KeyConflict).
    ///
    /// All views of one layout share a thread, connections and counters. Those are not the
    /// client's, so [`stats`](Self::stats), [`holds`](Self::holds) and [`health`](Self::health)
    /// tell of the view's layout. The connections are opened at the first use, in the background,
    /// as by [`connect_lazy`](crate::LockClientBuilder::connect_lazy). [`shutdown`](Self::shutdown)
    /// of the client or of any view ends all of them. A view of a view can be in the client's own
    /// layout again.
    ///
    /// What a URL says of one layout alone (`unit`, `skew`, `prefix`) is for the layout that the
    /// client was built with. Views of another one have its defaults.
    ///
    /// If the engine does not have the layout, or the client's settings can't be kept in it, each
    /// request of the view is [`LockError::Config`](crate::LockError::Config) with the reason.
    ///
    /// # Examples
    /// ```no_run
    /// # use lock_runtime::{Layout, LockClient, LockError};
    /// # async fn example(client: LockClient) -> Result<(), LockError> {
    /// let guard = client.lock("report").acquire().await?;
    /// let java = client.with_layout(Layout::Redisson);
    /// let shared_with_java = java.lock("stock").acquire().await?;
    /// # drop((guard, shared_with_java));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_layout(&self, layout: Layout) -> Self {
        let refusing = |reason: &str| Arc::clone(Self::unusable(reason).engine());
        let engine = match self.layouts.engine(layout) {
            Ok(engine) => engine,
            Err(LockError::Config { message }) => refusing(&message),
            Err(other) => refusing(&other.to_string()),
        };
        let client = Self {
            engine,
            ..self.clone()
        };
        client.viewed(|_| {})
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
        let (engine, own) = (&self.engine, self.engine.namespace());
        client.view = client
            .view
            .where_namespaces(engine.tells_namespaces_apart(), own);
        client
    }
}
