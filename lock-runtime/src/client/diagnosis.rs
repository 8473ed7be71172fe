//! What a client makes of the servers' own words when it starts.

use std::sync::Arc;

use lock_store::timing::{BACKOFF_MAX, Timeouts};
use lock_store::{Clock, Finding, Role, ServerHealth, Store};

use crate::error::LockError;

/// Logs once what endangers locks, as soon as the servers say so. Ends when all of them have
/// answered, or the store is closed.
pub(super) async fn diagnosis(store: Arc<dyn Store>, clock: Clock, timeouts: Timeouts) {
    while !store.is_closed() {
        let by = clock.now() + timeouts.connect + timeouts.command;
        if store.await_connection(by).await.is_ok() && store.log_findings(by).await {
            return;
        }
        clock.sleep_until(clock.now() + BACKOFF_MAX).await;
    }
}

const MEMORY: &str = "memory:";

/// Lists the URL `memory:` among the servers, though it is none: a service that was configured so
/// by mistake has to see it.
pub(super) fn of_this_process() -> ServerHealth {
    let mut server = ServerHealth::new(MEMORY.to_owned());
    server.role = Role::Master;
    server.findings.push(Finding::InProcess);
    server
}

/// Says so in the log.
pub(super) fn log_in_process() {
    of_this_process().log();
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
