//! The servers of a quorum, identified by what they report. No server counts twice, and none that
//! may have forgotten a lock.
//!
//! A restarted server may have lost its last writes, or all of them: it could grant a lock that it
//! had granted before. So it does not count until every lease that it may have forgotten has ended.
//! A restart ends all connections, so it is enough to ask for a server's run when a connection is
//! made.
//!
//! A client that knew the earlier run measures the time itself, with its monotonic clock. A client
//! that has never seen the server has only its uptime, a difference of the server's wall clock.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Clock, Instant, Mutex, StoreError, StoreErrorKind};

use super::info::Info;
use crate::errors;
use crate::resp::RespConnection;

/// The identities of one quorum's servers.
#[derive(Debug)]
pub(crate) struct Members {
    clock: Clock,
    rejoin_after: Duration,
    /// A time before the first request.
    opened: Instant,
    /// Their names in the URL, without user and password.
    names: Vec<String>,
    /// The latest known run of each.
    known: Mutex<Vec<Option<KnownRun>>>,
}

#[derive(Clone, Debug)]
struct KnownRun {
    id: String,
    counts_from: Instant,
}

/// One server's place in its quorum.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) members: Arc<Members>,
    pub(crate) at: usize,
}

/// One run of a server, from its start to its end.
pub(super) struct ServerRun {
    id: String,
    /// The server was started at least this long ago.
    uptime: Duration,
}

impl Members {
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

    /// True if this member was once the server that the URL describes.
    pub(crate) fn is_known(&self, at: usize) -> bool {
        matches!(self.known.lock().get(at), Some(Some(_)))
    }

    /// Marks this member as known.
    #[cfg(test)]
    pub(crate) fn note_known(&self, at: usize) {
        let run = ServerRun {
            id: format!("run {at}"),
            uptime: Duration::ZERO,
        };
        let _ = self.enter(at, run);
    }

    /// The other member that is known to have this run.
    fn other_with(&self, at: usize, run: &ServerRun) -> Option<&str> {
        let known = self.known.lock();
        let other = other_with(&known, at, run)?;
        Some(self.name(other))
    }

    /// Records a member's run, and returns the time from which it counts. If another member has the
    /// same run, returns that member's name as the error.
    fn enter(&self, at: usize, run: ServerRun) -> Result<Instant, &str> {
        let mut known = self.known.lock();
        if let Some(other) = other_with(&known, at, &run) {
            return Err(self.name(other));
        }
        let left = match known.get(at).and_then(Option::as_ref) {
            Some(before) if before.id == run.id => return Ok(before.counts_from),
            // The restart happened at an unknown time. The server's clock, which measures the
            // uptime, may have been set since.
            Some(_) => self.rejoin_after,
            None => self.rejoin_after.saturating_sub(run.uptime),
        };
        // Requests that waited for this connection reach a server that counts.
        let counts_from = match left.is_zero() {
            true => self.opened,
            false => self.clock.now() + left,
        };
        if let Some(run_of_member) = known.get_mut(at) {
            let id = run.id;
            *run_of_member = Some(KnownRun { id, counts_from });
        }
        Ok(counts_from)
    }
}

/// Which other member has this run.
fn other_with(known: &[Option<KnownRun>], at: usize, run: &ServerRun) -> Option<usize> {
    let has_it = |one: &Option<KnownRun>| one.as_ref().is_some_and(|one| one.id == run.id);
    let mut others = known.iter().enumerate();
    let other = others.find(|(other, one)| *other != at && has_it(one));
    other.map(|(other, _)| other)
}

impl Member {
    /// The run of the server that was reached. An error if that is another member.
    pub(super) async fn run(&self, connection: &RespConnection) -> Result<ServerRun, StoreError> {
        let info = Info::section(connection, "server").await;
        let info = info.map_err(|error| errors::store_error(&error))?;
        let run = ServerRun::read(&info).ok_or_else(|| {
            let text =
                "its INFO has no run_id or uptime, by which a quorum tells its servers apart";
            StoreError::new(StoreErrorKind::Misconfigured, text)
        })?;
        match self.members.other_with(self.at, &run) {
            None => Ok(run),
            Some(other) => Err(self.same_server_twice(other)),
        }
    }

    fn same_server_twice(&self, other: &str) -> StoreError {
        let name = self.members.name(self.at);
        let text = format!(
            "{other} and {name} are the same server, which would have two votes in the quorum; \
             list each server once"
        );
        StoreError::new(StoreErrorKind::Misconfigured, text)
    }

    /// The time from which the server of a new connection counts. An error if it can't be this
    /// member.
    pub(super) fn admit(&self, run: ServerRun) -> Result<Instant, StoreError> {
        let (members, name) = (&self.members, self.members.name(self.at));
        let counts_from = members.enter(self.at, run);
        let counts_from = counts_from.map_err(|other| self.same_server_twice(other))?;
        let left = counts_from.saturating_duration_since(members.clock.now());
        if !left.is_zero() {
            tracing::warn!(
                server = name,
                ?left,
                "a server of the quorum was started recently: it does not count until every lease \
                 that it may have forgotten has ended"
            );
        }
        Ok(counts_from)
    }
}

impl ServerRun {
    fn read(info: &Info) -> Option<Self> {
        // Negative if the server's clock was set back.
        let uptime: i64 = info.field("uptime_in_seconds")?.trim().parse().ok()?;
        let uptime = u64::try_from(uptime).unwrap_or(0);
        Some(Self {
            id: info.field("run_id")?.trim().to_owned(),
            // The server cuts both times of this difference to whole seconds.
            uptime: Duration::from_secs(uptime.saturating_sub(1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_and_its_uptime_is_not_rounded_up() {
        let said = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:7\r\n\
             uptime_in_days:0\r\n";
        let run = ServerRun::read(&said.into()).unwrap();
        assert_eq!(
            (run.id.as_str(), run.uptime),
            ("abc", Duration::from_secs(6))
        );
        let put_back = said.replace(":7", ":-3600");
        assert_eq!(
            ServerRun::read(&put_back.as_str().into()).unwrap().uptime,
            Duration::ZERO
        );
        assert!(ServerRun::read(&"# Server\r\n".into()).is_none());
    }

    fn members(rejoin_after: Duration) -> Arc<Members> {
        let clock = Clock::new(tokio::runtime::Handle::current());
        Members::new(
            vec!["one".to_owned(), "two".to_owned()],
            rejoin_after,
            clock,
        )
    }

    fn run(id: &str, uptime: u64) -> ServerRun {
        ServerRun {
            id: id.to_owned(),
            uptime: Duration::from_secs(uptime),
        }
    }

    #[tokio::test]
    async fn one_run_is_one_member() {
        let members = members(Duration::ZERO);
        let opened = members.opened;
        assert_eq!(members.enter(0, run("a", 9)), Ok(opened));
        assert_eq!(members.enter(1, run("a", 9)), Err("one"));
        assert!(members.is_known(0) && !members.is_known(1));
        assert_eq!(members.enter(1, run("b", 9)), Ok(opened));
        assert_eq!(members.enter(1, run("c", 9)), Ok(opened));
        assert_eq!(members.enter(0, run("c", 9)), Err("two"));
        // A refused run replaced no other.
        assert_eq!(members.enter(1, run("c", 9)), Ok(opened));
        assert_eq!(members.enter(0, run("b", 9)), Ok(opened));
    }

    #[tokio::test]
    async fn who_knew_an_earlier_run_counts_the_time_itself() {
        let minute = Duration::from_secs(60);
        let members = members(minute);
        assert_eq!(members.enter(0, run("a", 61)), Ok(members.opened));
        let before = members.clock.now();
        // The server's clock was set ahead, so it seems to run for long.
        let restarted = members.enter(0, run("b", 7200)).unwrap();
        assert!(restarted >= before + minute);
        // The same run over another connection, whatever the clock says now.
        assert_eq!(members.enter(0, run("b", 0)), Ok(restarted));
        let young = members.enter(1, run("c", 20)).unwrap();
        assert!(young >= before + 40 * Duration::from_secs(1) && young < before + minute);
    }
}
