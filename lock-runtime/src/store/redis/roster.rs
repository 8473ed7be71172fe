//! Which servers a quorum has, by what they say of themselves: none of them twice, and none that may have forgotten.
//!
//! A server that was restarted may have come back without its last writes, or without any: it could grant a lock that it
//! had granted before. So it does not count until every lease that it may have forgotten has ended. A restart ends all
//! connections, so it is enough to ask a server for its run when a connection is made.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::errors;
use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};

/// What the servers of one quorum are known as.
#[derive(Debug)]
pub(crate) struct Roster {
    clock: Clock,
    rejoin_after: Duration,
    /// Before anybody asked for anything.
    opened: Instant,
    /// Their names in the URL, without user and password, and their latest run.
    servers: Vec<(String, Mutex<Option<String>>)>,
}

/// One server's place in its quorum.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) roster: Arc<Roster>,
    pub(crate) at: usize,
}

/// From its start to its end, a server has one name.
struct Run {
    id: String,
    /// At least so long ago it was started.
    uptime: Duration,
}

impl Roster {
    pub(crate) fn new(names: Vec<String>, rejoin_after: Duration, clock: Clock) -> Arc<Self> {
        let servers = names.into_iter().map(|name| (name, Mutex::default()));
        Arc::new(Self {
            opened: clock.now(),
            clock,
            rejoin_after,
            servers: servers.collect(),
        })
    }

    pub(crate) fn name(&self, at: usize) -> &str {
        self.servers.get(at).map_or("", |(name, _)| name)
    }

    pub(crate) fn rejoin_after(&self) -> Duration {
        self.rejoin_after
    }

    /// Takes note of a server's run. Another one that has the same is named.
    fn enter(&self, at: usize, id: &str) -> Result<(), &str> {
        for (other, (name, run)) in self.servers.iter().enumerate() {
            let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
            if other == at {
                *run = Some(id.to_owned());
            } else if run.as_deref() == Some(id) {
                return Err(name);
            }
        }
        Ok(())
    }
}

impl Seat {
    /// Whether the server of a new connection may sit here, and from when on it counts.
    pub(super) async fn take(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<Instant, StoreError> {
        let (roster, name) = (&self.roster, self.roster.name(self.at));
        let mut info = redis::cmd("INFO");
        let said: String = info
            .arg("server")
            .query_async(connection)
            .await
            .map_err(|error| errors::store_error(&error))?;
        let run = Run::read(&said).ok_or_else(|| {
            let text =
                "its INFO has no run_id or uptime, by which a quorum tells its servers apart";
            StoreError::new(StoreErrorKind::Misconfigured, text)
        })?;
        roster.enter(self.at, &run.id).map_err(|other| {
            let text = format!(
                "{other} and {name} are the same server, which would have two votes in the quorum; list each server once"
            );
            StoreError::new(StoreErrorKind::Misconfigured, text)
        })?;
        let left = roster.rejoin_after.saturating_sub(run.uptime);
        if !left.is_zero() {
            tracing::warn!(
                server = name,
                ?left,
                "a server of the quorum was started lately, and does not count before every lease that it may have forgotten has ended"
            );
        }
        // Whoever has waited for this connection asks a server that counts.
        Ok(match left.is_zero() {
            true => roster.opened,
            false => roster.clock.now() + left,
        })
    }
}

impl Run {
    fn read(said: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = said.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let uptime: u64 = field("uptime_in_seconds")?.trim().parse().ok()?;
        Some(Self {
            id: field("run_id")?.trim().to_owned(),
            // Both ends of it are cut to whole seconds.
            uptime: Duration::from_secs(uptime.saturating_sub(1)),
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_and_its_uptime_is_not_rounded_up() {
        let said = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:7\r\nuptime_in_days:0\r\n";
        let run = Run::read(said).unwrap();
        assert_eq!(
            (run.id.as_str(), run.uptime),
            ("abc", Duration::from_secs(6))
        );
        assert!(Run::read("# Server\r\n").is_none());
    }

    #[tokio::test]
    async fn one_run_has_one_seat() {
        let clock = Clock::new(tokio::runtime::Handle::current());
        let names = vec!["one".to_owned(), "two".to_owned()];
        let roster = Roster::new(names, Duration::ZERO, clock);
        assert_eq!(roster.enter(0, "a"), Ok(()));
        assert_eq!(roster.enter(1, "a"), Err("one"));
        assert_eq!(roster.enter(1, "b"), Ok(()));
        assert_eq!(roster.enter(1, "c"), Ok(()));
        assert_eq!(roster.enter(0, "c"), Err("two"));
    }
}
