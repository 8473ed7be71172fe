//! [`Revoke`]: a lock is taken from its holders in good order.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_store::LockKey;

use crate::engine::Engine;
use crate::error::LockError;
use crate::revocation::Revocation;

/// The wish to take a lock from its holders; see [`LockClient::revoke`](crate::LockClient::revoke).
#[must_use = "nobody is asked before this is awaited"]
pub struct Revoke {
    engine: Arc<Engine>,
    key: LockKey,
    timeout: Duration,
    only: Option<Box<str>>,
}

impl Revoke {
    pub(crate) fn new(engine: Arc<Engine>, key: LockKey, timeout: Duration) -> Self {
        Self {
            engine,
            key,
            timeout,
            only: None,
        }
    }

    /// Only from the client with this [name](crate::LockClientBuilder::name). Others that hold the
    /// lock beside it keep theirs, and are not reported. Clients that don't answer are: one of them
    /// may be it.
    pub fn held_by(mut self, name: impl Into<String>) -> Self {
        self.only = Some(name.into().into());
        self
    }
}

lock_store::show!(Revoke as it: key = it.key, timeout = it.timeout, held_by = it.only);

impl IntoFuture for Revoke {
    type Output = Result<Revocation, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.engine.revoke(self.key, self.timeout, self.only).await })
    }
}
