//! What was logged of what servers say of themselves: of each its findings, once, and before them
//! once that it does not answer.

use std::collections::BTreeSet;

use lock_store::{Finding, Role, ServerHealth};

/// What was logged of the servers of one store.
#[derive(Debug, Default)]
pub(crate) struct FindingsLog {
    /// Servers that did not answer, and those that did.
    silent: BTreeSet<String>,
    heard: BTreeSet<String>,
    /// Whether all of them were heard.
    is_complete: bool,
}

impl FindingsLog {
    /// For a store whose findings another one logs.
    pub(crate) fn of_another() -> Self {
        Self {
            is_complete: true,
            ..Self::default()
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Logs what is new, until all servers were heard.
    pub(super) fn note(&mut self, servers: &[ServerHealth]) {
        if self.is_complete {
            return;
        }
        for server in servers {
            let (answers, address) = (server.role != Role::Unknown, server.address.clone());
            let is_new = match answers {
                true => self.heard.insert(address),
                false => !self.heard.contains(&address) && self.silent.insert(address),
            };
            if is_new {
                log(server);
            }
        }
        self.is_complete = servers.iter().all(|one| one.role != Role::Unknown);
    }
}

/// Logs the findings of one server.
pub(crate) fn log(server: &ServerHealth) {
    for finding in &server.findings {
        match finding {
            // A user with few rights was given few on purpose.
            Finding::Unknown { .. } | Finding::SnapshotsUnknown => {
                tracing::info!(server = %server.address, "the lock store: {finding}");
            }
            _ => tracing::warn!(server = %server.address, "the lock store: {finding}"),
        }
    }
}

/// What is known of a server that says nothing.
pub(crate) fn no_answer(address: &str, reason: String) -> ServerHealth {
    let mut server = ServerHealth::new(address.to_owned());
    server.findings.push(Finding::no_answer(reason));
    server
}
