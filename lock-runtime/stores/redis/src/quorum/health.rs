//! What the servers report about themselves, and which of them do not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lock_store::timing::DEFAULT_COMMAND_TIMEOUT;
use lock_store::{Finding, Instant, Role, ServerHealth, StoreError};

use super::majority::too_few;
use super::store::{FindingsLogged, QuorumStore};
use crate::diagnosis::findings_log::no_answer;
use crate::errors;

/// After a majority has reported, the others have at most this long.
const OTHERS: Duration = DEFAULT_COMMAND_TIMEOUT;

impl QuorumStore {
    /// The health of each server, silent ones included. A server that lost its data does not count
    /// for a while. So missing persistence is a finding only if servers count at once. An error if
    /// no majority answers.
    pub(crate) async fn diagnose(&self, by: Instant) -> Result<Vec<ServerHealth>, StoreError> {
        let servers = self.ask_health(by, |_| true).await?;
        let silent = servers.iter().enumerate();
        let silent = silent.filter(|(_, server)| server.role == Role::Unknown);
        let silent: Vec<_> = silent
            .map(|(at, _)| (at, errors::no_self_description()))
            .collect();
        match self.nodes.len() - silent.len() >= self.majority() {
            true => Ok(servers),
            false => Err(too_few(&self.members, self.nodes.len(), &silent)),
        }
    }

    /// Diagnoses the servers whose findings were not logged yet.
    pub(crate) async fn diagnose_others(&self, by: Instant) -> Result<(), StoreError> {
        let logged = self.logged.lock().await.clone();
        let is_new = |at: usize| logged[at] != FindingsLogged::Findings;
        self.ask_health(by, is_new).await.map(drop)
    }

    async fn ask_health(
        &self,
        by: Instant,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<ServerHealth>, StoreError> {
        let mut asking: BTreeSet<usize> = (0..self.nodes.len()).filter(|at| wanted(*at)).collect();
        let mut asked = self.each(|at, node| {
            let wanted = asking.contains(&at);
            async move {
                match wanted {
                    true => Some(node.diagnose(by).await),
                    false => None,
                }
            }
        });
        let (mut servers, mut silent, mut failed) = (BTreeMap::new(), 0, None);
        let mut fails = |at: usize, error: StoreError| {
            let name = self.members.name(at);
            let server = no_answer(name, error.to_string());
            (silent, failed) = (silent + 1, Some(error.of(name)));
            server
        };
        let (mut heard, mut until) = (0, by);
        while let Some(Some((at, said))) = self.clock.by(until, asked.recv()).await {
            heard += 1;
            if heard == self.majority() {
                until = by.min(self.clock.now() + OTHERS);
            }
            asking.remove(&at);
            let server = match said {
                Some(Ok(said)) => said.into_iter().next(),
                Some(Err(error)) => Some(fails(at, error)),
                None => None,
            };
            servers.extend(server.map(|server| (at, server)));
        }
        for at in asking {
            servers.insert(at, fails(at, errors::no_self_description()));
        }
        if let (true, Some(error)) = (silent == servers.len(), failed) {
            return Err(error);
        }
        self.log_each(&mut servers).await;
        Ok(servers.into_values().collect())
    }

    /// Logs what was found, and that a server does not answer: each of the two once, and nothing
    /// after the findings.
    async fn log_each(&self, servers: &mut BTreeMap<usize, ServerHealth>) {
        let mut logged = self.logged.lock().await;
        for (at, server) in servers {
            if !self.members.rejoin_after().is_zero() {
                let kept = [Finding::NoPersistence, Finding::SnapshotsUnknown];
                server.findings.retain(|one| !kept.contains(one));
            }
            let now = match server.role {
                Role::Unknown => FindingsLogged::NoAnswer,
                _ => FindingsLogged::Findings,
            };
            if logged[*at] != now && logged[*at] != FindingsLogged::Findings {
                server.log();
                logged[*at] = now;
            }
        }
    }

    /// True if the findings of all servers were logged.
    pub(crate) async fn is_diagnosed(&self) -> bool {
        let logged = self.logged.lock().await;
        logged.iter().all(|one| *one == FindingsLogged::Findings)
    }
}
