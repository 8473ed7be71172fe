//! The questions of people and dashboards: the holder of a key, its release by force, the servers'
//! state.

use std::time::Duration;

use lock_store::{
    FoundHolder, LockFound, LockKey, Permits, Replied, Role, ServerHealth, StoreErrorKind,
};

use super::Engine;
use super::errors::unavailable;
#[cfg(feature = "test-util")]
use crate::error::LostReason;
use crate::error::{KeyKind, LockError};

/// A migration may wait for another one, and for the disk.
const MIGRATION: Duration = Duration::from_secs(60);

impl Engine {
    pub(crate) async fn inspect(&self, key: LockKey) -> Result<LockFound, LockError> {
        self.check_key_and_client(&key)?;
        let command = self.store.inspect(key.clone(), self.command_by());
        let answer = self.ask(Some(&key), command).await?;
        self.expect_lock(key, answer).await
    }

    /// What was asked about a lock, or the error that says what the key is instead.
    pub(super) async fn expect_lock<T>(
        &self,
        key: LockKey,
        answer: Option<T>,
    ) -> Result<T, LockError> {
        match answer {
            Some(answer) => Ok(answer),
            None => Err(self
                .explain(LockError::key_conflict(key, KeyKind::Unknown), None)
                .await),
        }
    }

    /// Completes the error of a conflict with what the store has in the key, by one or two more
    /// commands. A conflict is a mistake that somebody has to find.
    pub(crate) async fn explain(&self, error: LockError, wanted: Option<Permits>) -> LockError {
        let LockError::KeyConflict {
            key,
            found: KeyKind::Unknown,
        } = error
        else {
            return error;
        };
        let other = self.store.foreign_lock(key.clone(), self.command_by());
        let other = other.await;
        if let Ok(Some(what)) = other {
            return LockError::key_conflict(key, KeyKind::OtherLayout(what));
        }
        let command = self.store.inspect(key.clone(), self.command_by());
        let found = match self.ask(Some(&key), command).await {
            Ok(Some(found)) => in_the_way(kind_of(found.holder.as_ref()), wanted),
            // It may be a lock of another layout if the store did not say that it is none.
            Ok(None) if other.is_ok() => KeyKind::NoLock,
            Ok(None) | Err(_) => KeyKind::Unknown,
        };
        LockError::key_conflict(key, found)
    }

    pub(crate) async fn force_release(&self, key: LockKey) -> Result<bool, LockError> {
        self.check_key_and_client(&key)?;
        let command = self.store.force_release(key.clone(), self.command_by());
        let answer = self.ask(Some(&key), command).await?;
        self.expect_lock(key, answer).await
    }

    /// The holds of this key are lost, as if the store had said that they are gone; also one on its
    /// way to the next task.
    #[cfg(feature = "test-util")]
    pub(crate) fn lose(&self, key: &LockKey) {
        for handoff in self.local_queues.take_handoffs() {
            if handoff.key() == key {
                self.end_tenure(&handoff);
            } else {
                self.hand_off_or_end(handoff);
            }
        }
        for hold in self.watchdog.holds() {
            if hold.find(self.id(), key).is_some() {
                hold.lose(LostReason::Gone);
            }
        }
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

    /// Creates what the store needs in its server.
    pub(crate) async fn migrate(&self) -> Result<(), LockError> {
        self.check_client()?;
        let by = self.clock.now() + MIGRATION;
        let done = self.store.migrate(by).await;
        done.map_err(|source| match source.kind() {
            StoreErrorKind::Misconfigured | StoreErrorKind::OtherVersion => {
                LockError::config(source.to_string())
            }
            _ => unavailable(None, source),
        })
    }

    async fn ping(&self) -> Result<Duration, LockError> {
        let sent = self.clock.now();
        self.ask(None, self.store.ping(self.command_by())).await?;
        Ok(self.clock.now().saturating_duration_since(sent))
    }

    /// One command, without a repeat.
    pub(super) async fn ask<T>(
        &self,
        key: Option<&LockKey>,
        command: impl Future<Output = Replied<T>>,
    ) -> Result<T, LockError> {
        let sent = self.clock.now();
        let result = command.await;
        self.liveness.note(sent, &result);
        result
            .map(|answer| answer.value)
            .map_err(|failure| unavailable(key, failure.error))
    }
}

/// An exclusive lock is not in the way of a request for one. Then the conflict is in a helper key,
/// such as the fence counter.
fn in_the_way(held: KeyKind, wanted: Option<Permits>) -> KeyKind {
    match (held, wanted) {
        (KeyKind::Exclusive, None) => KeyKind::Unknown,
        (held, _) => held,
    }
}

fn kind_of(holder: Option<&FoundHolder>) -> KeyKind {
    match holder {
        None => KeyKind::Unknown,
        Some(FoundHolder::Owner {
            permits: Some(permits),
            ..
        }) => match *permits {
            Permits::READ_WRITE => KeyKind::ReadWrite,
            _ => KeyKind::Shares,
        },
        Some(_) => KeyKind::Exclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_the_kind_that_is_asked_for_explains_no_conflict() {
        let exclusive = KeyKind::Exclusive;
        assert_eq!(in_the_way(exclusive, None), KeyKind::Unknown);
        assert_eq!(in_the_way(exclusive, Some(Permits::READ)), exclusive);
        assert_eq!(in_the_way(KeyKind::Shares, None), KeyKind::Shares);
    }

    #[test]
    fn a_holder_tells_the_kind_of_its_lock() {
        let owner = format!("{:032x}-2a", 7);
        let read_write = format!("{owner}:{}", Permits::READ_WRITE);
        for (holder, kind) in [
            (&*owner, KeyKind::Exclusive),
            (&format!("{owner}:kept"), KeyKind::Exclusive),
            ("theirs:5", KeyKind::Exclusive),
            (&format!("{owner}:1"), KeyKind::Shares),
            (&format!("{owner}:kept:2"), KeyKind::Shares),
            (&read_write, KeyKind::ReadWrite),
        ] {
            let found = FoundHolder::parse(holder.as_bytes());
            assert_eq!(kind_of(Some(&found)), kind, "{holder}");
        }
        assert_eq!(kind_of(None), KeyKind::Unknown);
    }
}
