//! What becomes of what servers say of themselves when a client starts.

use std::sync::Arc;

use crate::clock::Clock;
use crate::config::{BACKOFF_MAX, Timeouts};
use crate::error::LockError;
use crate::health::ServerHealth;
use crate::store::Store;
use crate::store::redis::RedisStore;

/// Logs what endangers locks, once, as soon as the servers say so. Ends when they have, or the store is closed.
pub(super) async fn diagnosis(redis: Arc<RedisStore>, clock: Clock, timeouts: Timeouts) {
    while !redis.is_closed() {
        let by = clock.now() + timeouts.connect + timeouts.command;
        let connected = redis.first_attempt(by).await;
        if redis.is_diagnosed().await || (connected.is_ok() && redis.diagnose(by).await.is_ok()) {
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
