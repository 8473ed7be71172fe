//! The client that annotated functions use: the scoped one, or the global one.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use once_cell::sync::OnceCell;

use super::LockClient;
use crate::engine::reentrancy::call_chain::OfTask;
use crate::error::LockError;

/// The first one, or the one that has replaced it.
static GLOBAL: OnceCell<RwLock<LockClient>> = OnceCell::new();

tokio::task_local! {
    static SCOPED: OfTask<Arc<LockClient>>;
}

/// Connects to the store and installs the client as the global one. Call it once, at startup. After
/// the [`shutdown`](LockClient::shutdown) of that client it can be called again.
///
/// # Errors
/// - [`LockError::AlreadyInitialized`]: a second call.
/// - [`LockError::Config`]: a bad URL.
/// - [`LockError::Unavailable`]: the store can't be reached within the connect timeout (1 s).
///
/// # Cancel safety
/// If the future is dropped, nothing is installed.
///
/// # Examples
/// ```no_run
/// # async fn main_() -> Result<(), lock_runtime::LockError> {
/// lock_runtime::init("redis://127.0.0.1/").await?;
/// # Ok(())
/// # }
/// ```
pub async fn init(url: impl Into<String>) -> Result<(), LockError> {
    if installed().is_some_and(|client| !client.engine().is_closing()) {
        return Err(LockError::AlreadyInitialized);
    }
    LockClient::builder().url(url).connect().await?.install()
}

/// Ends the global client, as [`LockClient::shutdown`] does. The counterpart of [`init`]: the last
/// thing that a program awaits. A global client never ends by itself, so without this a lock that
/// is released in the last moment may stay for its lease. Without a global client it does nothing.
///
/// # Cancel safety
/// As [`LockClient::shutdown`].
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # use lock_runtime::{LockClient, LockError, distributed_lock};
/// #[distributed_lock(key = "report")]
/// async fn report() -> Result<u32, LockError> {
///     Ok(7)
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), LockError> {
///     // in a service: lock_runtime::init("redis://127.0.0.1/").await?
///     LockClient::in_memory().install()?;
///     let done = report().await;
///     lock_runtime::shutdown(Duration::from_secs(5)).await;
///     assert_eq!(done?, 7);
///     Ok(())
/// }
/// ```
pub async fn shutdown(timeout: Duration) {
    if let Some(client) = installed() {
        client.shutdown(timeout).await;
    }
}

impl LockClient {
    /// Makes this the global client, which annotated functions use outside of any
    /// [`scope`](Self::scope). It replaces a global client that was [shut down](Self::shutdown).
    ///
    /// # Errors
    /// [`LockError::AlreadyInitialized`] if there is one; [`LockError::Shutdown`] if this one was
    /// shut down.
    pub fn install(&self) -> Result<(), LockError> {
        if self.engine().is_closing() {
            return Err(LockError::Shutdown);
        }
        let mut is_first = false;
        let global = GLOBAL.get_or_init(|| {
            is_first = true;
            RwLock::new(self.clone())
        });
        if is_first {
            return Ok(());
        }
        let mut global = global.write().unwrap_or_else(PoisonError::into_inner);
        if !global.engine().is_closing() {
            return Err(LockError::AlreadyInitialized);
        }
        let before = std::mem::replace(&mut *global, self.clone());
        // The last clone of a client ends its thread, which is not waited for under the lock.
        drop(global);
        drop(before);
        Ok(())
    }

    /// The global client. After its [`shutdown`](Self::shutdown) it stays the global one and
    /// refuses requests, until another is installed.
    ///
    /// # Errors
    /// [`LockError::NotInitialized`] before [`init`] or [`install`](Self::install).
    pub fn global() -> Result<Self, LockError> {
        installed().ok_or(LockError::NotInitialized)
    }

    /// Runs a future in which annotated functions use this client: for tests, and for a client for
    /// each tenant. The call chain goes on: a call in there shares a hold of its call chain. A task
    /// spawned in there is outside of the scope and of the call chain, also if the future itself
    /// polls it, as a `LocalSet` does. The scope goes with its future into another task.
    ///
    /// # Cancel safety
    /// Dropping the future drops the inner one.
    ///
    /// # Examples
    /// ```
    /// # use lock_runtime::{LockClient, LockError, distributed_lock};
    /// #[distributed_lock(key = "report")]
    /// async fn report() -> Result<u32, LockError> {
    ///     Ok(7)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LockError> {
    /// let client = LockClient::in_memory();
    /// assert_eq!(client.scope(report()).await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        let client = Arc::new(self.clone());
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            let scoped = OfTask::new(Arc::clone(&client));
            SCOPED.sync_scope(scoped, || future.as_mut().poll(cx))
        })
        .await
    }
}

fn installed() -> Option<LockClient> {
    let global = GLOBAL.get()?.read();
    Some(global.unwrap_or_else(PoisonError::into_inner).clone())
}

/// The client of the innermost scope, or the global one.
pub(crate) fn current() -> Result<LockClient, LockError> {
    let scoped = SCOPED.try_with(|scoped| scoped.get().map(|client| LockClient::clone(client)));
    scoped.ok().flatten().map_or_else(LockClient::global, Ok)
}
