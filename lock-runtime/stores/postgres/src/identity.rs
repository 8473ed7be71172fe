//! [`KnownIdentity`]: which of several servers has the locks.

use lock_store::{Mutex, StoreError, StoreErrorKind};
use tokio::sync::Notify;
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
pub(crate) struct KnownIdentity {
    seen: Mutex<SeenIdentity>,
    /// Another server is used from now on.
    changed: Notify,
}

#[derive(Debug, Default)]
struct SeenIdentity {
    last: Option<ServerIdentity>,
    /// A server of another system was refused.
    is_other_there: bool,
}

impl SeenIdentity {
    fn expect_present(&self, found: ServerIdentity, server: &str) -> Result<(), StoreError> {
        let refused = |text: String| {
            let error = StoreError::new(StoreErrorKind::ReadOnly, format!("{server}: {text}"));
            Err(error.advise(
                "let each host of the URL be the primary or one of its standbys, and end a primary \
                 that was replaced",
            ))
        };
        match self.last {
            Some(last) if last.system != found.system => {
                refused("it is of another system than the server that was used before".to_owned())
            }
            Some(last) if last.timeline > found.timeline => refused(format!(
                "it is a primary that was replaced (its timeline is {}, and {} was used before)",
                found.timeline, last.timeline
            )),
            _ => Ok(()),
        }
    }
}

impl KnownIdentity {
    /// Refuses a primary that another one has replaced, and a server of another system as long as
    /// one of the known system may be there.
    pub(crate) fn check(&self, found: ServerIdentity, server: &str) -> Result<(), StoreError> {
        let mut seen = self.seen.lock();
        seen.is_other_there |= seen.last.is_some_and(|last| last.system != found.system);
        seen.expect_present(found, server)?;
        self.note(&mut seen, found);
        Ok(())
    }

    /// The same for a session that carries out no commands. Its address may be another one. So it
    /// neither says first which system is the right one, nor that another has taken its place. A
    /// newer timeline of the known system counts, wherever it was seen: the primary of the older
    /// one was replaced, and is not used again although commands reach no other yet.
    pub(crate) fn check_listening(
        &self,
        found: ServerIdentity,
        server: &str,
    ) -> Result<(), StoreError> {
        let mut seen = self.seen.lock();
        seen.expect_present(found, server)?;
        if seen.last.is_some() {
            self.note(&mut seen, found);
        }
        Ok(())
    }

    fn note(&self, seen: &mut SeenIdentity, found: ServerIdentity) {
        if seen.last.replace(found) != Some(found) {
            self.changed.notify_waiters();
        }
    }

    /// Until another server is used.
    pub(crate) async fn until_past(&self, found: ServerIdentity) {
        loop {
            let changed = self.changed.notified();
            if self.is_past(found) {
                return;
            }
            changed.await;
        }
    }

    /// True if another server is used since.
    pub(crate) fn is_past(&self, found: ServerIdentity) -> bool {
        self.seen.lock().last.is_some_and(|last| last != found)
    }

    /// To be called when all addresses have failed. If another system is there, forgets the server
    /// that was used before, so that the other one may be the one from now on.
    pub(crate) fn forget_if_replaced(&self) {
        let mut seen = self.seen.lock();
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

    #[test]
    fn a_session_that_listens_does_not_say_which_system_is_the_right_one() {
        let known = KnownIdentity::default();
        let of = |system, timeline| ServerIdentity { system, timeline };
        known.check_listening(of(8, 1), "h:1").unwrap();
        known.check(of(7, 1), "h:1").unwrap();
        assert!(known.is_past(of(8, 1)));
        known.check_listening(of(8, 1), "h:1").unwrap_err();
        // Nor do all addresses fail because of it.
        known.forget_if_replaced();
        known.check_listening(of(7, 2), "h:1").unwrap();
        assert!(known.is_past(of(7, 1)));
        known.check_listening(of(7, 1), "h:1").unwrap_err();
    }
}
