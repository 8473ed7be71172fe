//! The log of findings about servers. For each server the findings are logged once. If it does not
//! answer at first, that is logged once before.

use std::collections::BTreeSet;

use lock_store::{Finding, Role, ServerHealth};

use crate::transport::proof::DEAF;

/// What was logged about the servers of one store.
#[derive(Debug, Default)]
pub(crate) struct FindingsLog {
    /// Servers that did not answer, and servers that did.
    silent: BTreeSet<String>,
    heard: BTreeSet<String>,
    /// True if all servers have answered.
    is_complete: bool,
}

impl FindingsLog {
    /// For a store whose findings are logged by another.
    pub(crate) fn of_another() -> Self {
        Self {
            is_complete: true,
            ..Self::default()
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Logs what is new, until all servers have answered.
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
                let mut server = server.clone();
                // That one is logged where it is found.
                let is_told =
                    |one: &Finding| matches!(one, Finding::Other { text, .. } if text == DEAF);
                server.findings.retain(|one| !is_told(one));
                server.log();
            }
        }
        self.is_complete = servers.iter().all(|one| one.role != Role::Unknown);
    }
}

pub(crate) fn no_answer(address: &str, reason: String) -> ServerHealth {
    let mut server = ServerHealth::new(address.to_owned());
    server.findings.push(Finding::no_answer(reason));
    server
}
