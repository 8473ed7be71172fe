//! The client that annotated functions use: the scoped one, or the global one.

use once_cell::sync::OnceCell;

use super::LockClient;
use crate::error::LockError;

static GLOBAL: OnceCell<LockClient> = OnceCell::new();

tokio::task_local! {
    static SCOPED: LockClient;
}

/// Connects to the store and installs the client as the global one: once, at startup.
///
/// # Errors
/// [`LockError::AlreadyInitialized`] for the second call, [`LockError::Config`] for a bad URL,
/// [`LockError::Unavailable`] if the store can't be reached within the connect timeout (1 s).
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
    if GLOBAL.get().is_some() {
        return Err(LockError::AlreadyInitialized);
    }
    LockClient::builder().url(url).connect().await?.install()
}

impl LockClient {
    /// Makes this the global client, which annotated functions use outside of any [`scope`](Self::scope).
    ///
    /// # Errors
    /// [`LockError::AlreadyInitialized`] if there is one.
    pub fn install(&self) -> Result<(), LockError> {
        GLOBAL
            .set(self.clone())
            .map_err(|_| LockError::AlreadyInitialized)
    }

    /// The global client.
    ///
    /// # Errors
    /// [`LockError::NotInitialized`] before [`init`] or [`install`](Self::install).
    pub fn global() -> Result<Self, LockError> {
        GLOBAL.get().cloned().ok_or(LockError::NotInitialized)
    }

    /// Runs a future in which annotated functions use this client: for tests, and for a client per tenant. It says
    /// which client, and nothing else: a call in there that needs a lock which its call chain holds shares that hold. Tasks
    /// spawned in there are outside, of the scope and of the call chain.
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
        SCOPED.scope(self.clone(), future).await
    }
}

/// The client of the innermost scope, or the global one.
pub(crate) fn current() -> Result<LockClient, LockError> {
    SCOPED
        .try_with(Clone::clone)
        .or_else(|_| LockClient::global())
}
