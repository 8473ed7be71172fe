//! [`KnownIdentity`]: which of several servers has the locks.

use lock_store::{Mutex, StoreError, StoreErrorKind};
use tokio_postgres::Client;

/// The system, and its timeline: a standby that takes over begins a new one.
const QUESTION: &str = "SELECT system_identifier, ('x' || pg_catalog.substr( \
        pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::bigint \
    FROM pg_catalog.pg_control_system()";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerIdentity {
    system: i64,
    timeline: i64,
}

impl ServerIdentity {
    /// `None` if the server does not tell, as some that are only like PostgreSQL.
    pub(crate) async fn of(client: &Client) -> Option<Self> {
        let rows = client.query_typed(QUESTION, &[]).await.ok()?;
        let row = rows.first()?;
        Some(Self {
            system: row.try_get(0).ok()?,
            timeline: row.try_get(1).ok()?,
        })
    }
}

/// The identity of the server that was used last.
#[derive(Debug, Default)]
pub(crate) struct KnownIdentity(Mutex<SeenIdentity>);

#[derive(Debug, Default)]
struct SeenIdentity {
    last: Option<ServerIdentity>,
    /// A server of another system was refused.
    is_other_there: bool,
}

impl KnownIdentity {
    /// Refuses a primary that another one has replaced, and a server of another system as long as
    /// one of the known system may be there.
    pub(crate) fn check(&self, found: ServerIdentity, server: &str) -> Result<(), StoreError> {
        let mut seen = self.0.lock();
        let refused = |text: String| {
            let error = StoreError::new(StoreErrorKind::ReadOnly, format!("{server}: {text}"));
            Err(error.advise(
                "let each host of the URL be the primary or one of its standbys, and end a primary \
                 that was replaced",
            ))
        };
        match seen.last {
            Some(last) if last.system != found.system => {
                seen.is_other_there = true;
                refused("it is of another system than the server that was used before".to_owned())
            }
            Some(last) if last.timeline > found.timeline => refused(format!(
                "it is a primary that was replaced (its timeline is {}, and {} was used before)",
                found.timeline, last.timeline
            )),
            _ => {
                seen.last = Some(found);
                Ok(())
            }
        }
    }

    /// True if another server is used since.
    pub(crate) fn is_past(&self, found: ServerIdentity) -> bool {
        self.0.lock().last.is_some_and(|last| last != found)
    }

    /// To be called when all addresses have failed. If another system is there, forgets the server
    /// that was used before, so that the other one may be the one from now on.
    pub(crate) fn forget_if_replaced(&self) {
        let mut seen = self.0.lock();
        if std::mem::take(&mut seen.is_other_there) {
            seen.last = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_primary_and_another_system_are_refused() {
        let known = KnownIdentity::default();
        let check = |system, timeline| known.check(ServerIdentity { system, timeline }, "h:1");
        check(7, 1).unwrap();
        check(7, 2).unwrap();
        let said = check(7, 1).unwrap_err().to_string();
        assert!(said.contains("was replaced"), "{said}");
        // All have failed, and the same server was among them.
        known.forget_if_replaced();
        check(7, 1).unwrap_err();
        let said = check(8, 1).unwrap_err().to_string();
        assert!(said.contains("another system"), "{said}");
        check(7, 2).unwrap();
        check(8, 1).unwrap_err();
        known.forget_if_replaced();
        check(8, 1).unwrap();
        let (system, timeline) = (7, 2);
        assert!(known.is_past(ServerIdentity { system, timeline }));
    }
}
