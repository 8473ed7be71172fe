//! What people and dashboards ask: who holds a key, to take it away, how the servers are.

use std::time::Duration;

use lock_store::{Answer, Failure, Inspection, LockKey, Role, ServerHealth};

use super::Engine;
use super::errors::unavailable;
use crate::error::LockError;

impl Engine {
    pub(crate) async fn inspect(&self, key: LockKey) -> Result<Inspection, LockError> {
        self.check(&key)?;
        let command = self.store.inspect(key.clone(), self.command_by());
        let answer = self.ask(Some(&key), command).await?;
        answer.ok_or(LockError::KeyConflict { key })
    }

    pub(crate) async fn force_release(&self, key: LockKey) -> Result<bool, LockError> {
        self.check(&key)?;
        let command = self.store.force_release(key.clone(), self.command_by());
        let answer = self.ask(Some(&key), command).await?;
        answer.ok_or(LockError::KeyConflict { key })
    }

    /// What the servers say of themselves, and how long the store took to answer just now. An error
    /// if it does not answer, unless some of its servers do.
    pub(crate) async fn diagnose(&self) -> Result<(Duration, Vec<ServerHealth>), LockError> {
        self.check_client()?;
        let servers = self.store.servers(self.command_by());
        let (round_trip, servers) = tokio::join!(self.ping(), servers);
        let answers = |server: &&ServerHealth| server.role != Role::Unknown;
        match (round_trip, servers) {
            (Ok(round_trip), servers) => {
                let servers = servers.map_err(|source| unavailable(None, source))?;
                Ok((round_trip, servers))
            }
            (Err(_), Ok(servers)) if servers.iter().any(|server| answers(&server)) => {
                let answered = servers.iter().filter(answers);
                let slowest = answered.map(|server| server.round_trip).max();
                Ok((slowest.unwrap_or_default(), servers))
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn ping(&self) -> Result<Duration, LockError> {
        let sent = self.clock.now();
        self.ask(None, self.store.ping(self.command_by())).await?;
        Ok(self.clock.now().saturating_duration_since(sent))
    }

    /// One command, without a repeat.
    async fn ask<T>(
        &self,
        key: Option<&LockKey>,
        command: impl Future<Output = Result<Answer<T>, Failure>>,
    ) -> Result<T, LockError> {
        let sent = self.clock.now();
        let result = command.await;
        self.liveness.note(sent, &result);
        result
            .map(|answer| answer.value)
            .map_err(|failure| unavailable(key, failure.error))
    }
}
