//! What becomes of what servers say of themselves when a client starts.

use std::sync::Arc;
use std::time::Instant;

use crate::clock::Clock;
use crate::config::{BACKOFF_MAX, Timeouts};
use crate::error::{LockError, StoreError};
use crate::health::ServerHealth;
use crate::store::Store;
use crate::store::quorum::QuorumStore;
use crate::store::redis::RedisStore;

/// What is connected to.
#[derive(Clone)]
pub(super) enum Servers {
    Redis(Arc<RedisStore>),
    Quorum(Arc<QuorumStore>),
}

impl Servers {
    pub(super) async fn first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        match self {
            Self::Redis(store) => store.first_attempt(by).await,
            Self::Quorum(store) => store.first_attempt(by).await,
        }
    }

    /// What they say of themselves. Findings are logged the first time.
    pub(super) async fn diagnose(&self, by: Instant) -> Result<Vec<ServerHealth>, StoreError> {
        match self {
            Self::Redis(store) => store.diagnose(by).await,
            Self::Quorum(store) => store.diagnose(by).await,
        }
    }

    /// Logs the findings of those that were not heard before.
    async fn diagnose_others(&self, by: Instant) -> Result<(), StoreError> {
        match self {
            Self::Redis(store) => store.diagnose(by).await.map(drop),
            Self::Quorum(store) => store.diagnose_others(by).await,
        }
    }

    async fn is_diagnosed(&self) -> bool {
        match self {
            Self::Redis(store) => store.is_diagnosed().await,
            Self::Quorum(store) => store.is_diagnosed().await,
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Redis(store) => store.is_closed(),
            Self::Quorum(store) => store.is_closed(),
        }
    }
}

/// Logs what endangers locks, once, as soon as the servers say so. Ends when all of them have, or the store is closed.
pub(super) async fn diagnosis(redis: Servers, clock: Clock, timeouts: Timeouts) {
    while !redis.is_closed() {
        let by = clock.now() + timeouts.connect + timeouts.command;
        let connected = redis.first_attempt(by).await;
        if connected.is_ok() && !redis.is_diagnosed().await {
            // A failure is told by the first request.
            let _ = redis.diagnose_others(by).await;
        }
        if redis.is_diagnosed().await {
            return;
        }
        clock.sleep_until(clock.now() + BACKOFF_MAX).await;
    }
}

/// The error of a client with strict checks.
pub(super) fn refuse(servers: &[ServerHealth]) -> Result<(), LockError> {
    let mut found = Vec::new();
    for server in servers {
        let of_it = server.findings.iter();
        found.extend(of_it.map(|finding| format!("{}: {finding}", server.address)));
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(LockError::config(format!(
            "`strict_checks` refuses this store: {}",
            found.join("; ")
        ))),
    }
}
