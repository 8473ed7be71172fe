//! Which servers a quorum has, by what they say of themselves: none of them twice, and none that may have forgotten.
//!
//! A server that was restarted may have come back without its last writes, or without any: it could grant a lock that it
//! had granted before. So it does not count until every lease that it may have forgotten has ended. A restart ends all
//! connections, so it is enough to ask a server for its run when a connection is made.
//!
//! A client that knew the run before counts the time itself, by its monotonic clock. One that has never seen the server has
//! only the server's word, its uptime, which is a difference of its wall clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_store::{Clock, StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;

use super::errors;

/// What the servers of one quorum are known as.
#[derive(Debug)]
pub(crate) struct Roster {
    clock: Clock,
    rejoin_after: Duration,
    /// Before anybody asked for anything.
    opened: Instant,
    /// Their names in the URL, without user and password.
    names: Vec<String>,
    /// The latest run of each.
    known: Mutex<Vec<Option<Known>>>,
}

/// A run that has a seat.
#[derive(Clone, Debug)]
struct Known {
    id: String,
    counts_from: Instant,
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
        Arc::new(Self {
            opened: clock.now(),
            clock,
            rejoin_after,
            known: Mutex::new(vec![None; names.len()]),
            names,
        })
    }

    pub(crate) fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }

    pub(crate) fn rejoin_after(&self) -> Duration {
        self.rejoin_after
    }

    /// Whether the server of this seat was once what the URL says.
    pub(crate) fn is_known(&self, at: usize) -> bool {
        matches!(self.known().get(at), Some(Some(_)))
    }

    /// As if the server of this seat had been what the URL says.
    #[cfg(test)]
    pub(crate) fn was_good(&self, at: usize) {
        let run = Run {
            id: format!("run {at}"),
            uptime: Duration::ZERO,
        };
        let _ = self.enter(at, run);
    }

    fn known(&self) -> MutexGuard<'_, Vec<Option<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a server's run, and says from when on it counts. Another seat that has the same run is named.
    fn enter(&self, at: usize, run: Run) -> Result<Instant, &str> {
        let mut known = self.known();
        let has_it = |one: &Option<Known>| one.as_ref().is_some_and(|one| one.id == run.id);
        let mut others = known.iter().enumerate();
        if let Some((other, _)) = others.find(|(other, one)| *other != at && has_it(one)) {
            return Err(self.name(other));
        }
        let left = match known.get(at).and_then(Option::as_ref) {
            Some(before) if before.id == run.id => return Ok(before.counts_from),
            // It was started again, who knows when, and its uptime is by a clock that may have been set since.
            Some(_) => self.rejoin_after,
            None => self.rejoin_after.saturating_sub(run.uptime),
        };
        // Whoever has waited for this connection asks a server that counts.
        let counts_from = match left.is_zero() {
            true => self.opened,
            false => self.clock.now() + left,
        };
        if let Some(seat) = known.get_mut(at) {
            let id = run.id;
            *seat = Some(Known { id, counts_from });
        }
        Ok(counts_from)
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
        let counts_from = roster.enter(self.at, run).map_err(|other| {
            let text = format!(
                "{other} and {name} are the same server, which would have two votes in the quorum; list each server once"
            );
            StoreError::new(StoreErrorKind::Misconfigured, text)
        })?;
        let left = counts_from.saturating_duration_since(roster.clock.now());
        if !left.is_zero() {
            tracing::warn!(
                server = name,
                ?left,
                "a server of the quorum was started lately, and does not count before every lease that it may have forgotten has ended"
            );
        }
        Ok(counts_from)
    }
}

impl Run {
    fn read(said: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = said.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        // Below zero if the server's clock was put back.
        let uptime: i64 = field("uptime_in_seconds")?.trim().parse().ok()?;
        let uptime = u64::try_from(uptime).unwrap_or(0);
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
        let put_back = said.replace(":7", ":-3600");
        assert_eq!(Run::read(&put_back).unwrap().uptime, Duration::ZERO);
        assert!(Run::read("# Server\r\n").is_none());
    }

    fn roster(rejoin_after: Duration) -> Arc<Roster> {
        let clock = Clock::new(tokio::runtime::Handle::current());
        Roster::new(
            vec!["one".to_owned(), "two".to_owned()],
            rejoin_after,
            clock,
        )
    }

    fn run(id: &str, uptime: u64) -> Run {
        Run {
            id: id.to_owned(),
            uptime: Duration::from_secs(uptime),
        }
    }

    #[tokio::test]
    async fn one_run_has_one_seat() {
        let roster = roster(Duration::ZERO);
        let opened = roster.opened;
        assert_eq!(roster.enter(0, run("a", 9)), Ok(opened));
        assert_eq!(roster.enter(1, run("a", 9)), Err("one"));
        assert!(roster.is_known(0) && !roster.is_known(1));
        assert_eq!(roster.enter(1, run("b", 9)), Ok(opened));
        assert_eq!(roster.enter(1, run("c", 9)), Ok(opened));
        assert_eq!(roster.enter(0, run("c", 9)), Err("two"));
        // Who was refused has taken nobody's seat.
        assert_eq!(roster.enter(1, run("c", 9)), Ok(opened));
        assert_eq!(roster.enter(0, run("b", 9)), Ok(opened));
    }

    #[tokio::test]
    async fn who_knew_an_earlier_run_counts_the_time_itself() {
        let minute = Duration::from_secs(60);
        let roster = roster(minute);
        assert_eq!(roster.enter(0, run("a", 61)), Ok(roster.opened));
        let before = roster.clock.now();
        // Its clock was put ahead, so that it seems to run for long.
        let restarted = roster.enter(0, run("b", 7200)).unwrap();
        assert!(restarted >= before + minute);
        // The same run by another connection, whatever its clock says by now.
        assert_eq!(roster.enter(0, run("b", 0)), Ok(restarted));
        let young = roster.enter(1, run("c", 20)).unwrap();
        assert!(young >= before + 40 * Duration::from_secs(1) && young < before + minute);
    }
}
