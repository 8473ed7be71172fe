//! [`KnownServer`]: which of several servers at one name has the locks.

use std::net::SocketAddr;

use lock_store::{Mutex, StoreError, StoreErrorKind};

use super::info::Info;
use crate::resp::RespConnection;

/// The history of a server's data. A replica that takes over begins a new one and remembers that
/// of its master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataHistory {
    at: Option<SocketAddr>,
    history: String,
    before: String,
}

impl DataHistory {
    /// `None` if the user may not ask (`+info`).
    pub(super) async fn of(connection: &RespConnection, at: Option<SocketAddr>) -> Option<Self> {
        let info = Info::section(connection, "replication").await.ok()?;
        let field = |name: &str| Some(info.field(name)?.trim().to_owned());
        Some(Self {
            at,
            history: field("master_replid")?,
            before: field("master_replid2").unwrap_or_default(),
        })
    }
}

/// That of the server which was used last.
#[derive(Debug, Default)]
pub(crate) struct KnownServer(Mutex<Option<DataHistory>>);

impl KnownServer {
    /// Refuses a server that has other locks than the known one, as long as that one's address is
    /// still among those of the name. At the same address it has been started anew.
    pub(super) fn check(
        &self,
        found: &DataHistory,
        all: &[Option<SocketAddr>],
    ) -> Result<(), StoreError> {
        let known = self.0.lock();
        let Some(known) = known.as_ref() else {
            return Ok(());
        };
        let is_kin = [&found.history, &found.before].contains(&&known.history);
        if is_kin || found.at == known.at || !all.contains(&known.at) {
            return Ok(());
        }
        let text = "it takes writes and is no successor of the server that was used before, which \
            has the locks and whose address the same name has";
        let error = StoreError::new(StoreErrorKind::ReadOnly, text);
        Err(error.advise("let a name lead to one master and its replicas"))
    }

    pub(super) fn note(&self, found: DataHistory) {
        *self.0.lock() = Some(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    fn identity(port: u16, history: &str, before: &str) -> DataHistory {
        let (history, before) = (history.to_owned(), before.to_owned());
        let at = at(port);
        DataHistory {
            at,
            history,
            before,
        }
    }

    #[test]
    fn another_master_is_refused_and_a_successor_is_not() {
        let known = KnownServer::default();
        let both = [at(1), at(2)];
        let is_refused = |found: DataHistory, all: &[_]| known.check(&found, all).is_err();
        assert!(!is_refused(identity(1, "a", "0"), &both));
        known.note(identity(1, "a", "0"));
        for (found, refused) in [
            (identity(2, "b", "0"), true),
            // By another way, a replica that took over, and a new start.
            (identity(2, "a", "0"), false),
            (identity(2, "b", "a"), false),
            (identity(1, "b", "0"), false),
        ] {
            assert_eq!(is_refused(found.clone(), &both), refused, "{found:?}");
        }
        // Its address is gone.
        assert!(!is_refused(identity(2, "b", "0"), &[at(2)]));
        // One that was replaced comes back.
        known.note(identity(2, "b", "a"));
        assert!(is_refused(identity(1, "a", "0"), &both));
    }
}
