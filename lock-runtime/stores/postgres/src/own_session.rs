//! [`OwnSession`]: whether a connection is a session of the server, and the same one all the time.
//!
//! A pooler may give each transaction to any session. Two things together say that there is none:
//!
//! - The process that the server named at the login is that of the session. Most poolers make up a
//!   number of their own. One that tells that of its session, as pgagroal may, is not found out by
//!   this: a client that is alone for a moment gets the same session again.
//! - A message has come to a session at this address while it was idle. A pooler that keeps no
//!   session for an idle client can't bring it one.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_store::Mutex;

/// The addresses at which an idle session has heard something.
#[derive(Debug, Default)]
pub(crate) struct HeardAddresses(Mutex<HashSet<String>>);

impl HeardAddresses {
    pub(crate) fn note(&self, server: &str) {
        self.0.lock().insert(server.to_owned());
    }

    /// Nothing was heard there, as if there were a pooler now.
    pub(crate) fn forget(&self, server: &str) {
        self.0.lock().remove(server);
    }

    fn has(&self, server: &str) -> bool {
        self.0.lock().contains(server)
    }
}

/// Of one connection.
#[derive(Clone)]
pub(crate) struct OwnSession {
    /// `None` if the processes are not the same: a pooler's.
    at: Option<(Arc<HeardAddresses>, Arc<str>)>,
    /// It does not change while the connection lasts.
    is_known: Arc<AtomicBool>,
}

impl OwnSession {
    pub(crate) fn new(is_process_known: bool, heard: &Arc<HeardAddresses>, server: &str) -> Self {
        Self {
            at: is_process_known.then(|| (Arc::clone(heard), Arc::from(server))),
            is_known: Arc::default(),
        }
    }

    /// The processes are the same. Enough to send statements without names beside each other: in
    /// turns, a caller that is not polled keeps the session from the others.
    pub(crate) fn may_be_own(&self) -> bool {
        self.at.is_some()
    }

    /// False as long as nothing says that it is.
    pub(crate) fn is_own(&self) -> bool {
        let Some((heard, server)) = &self.at else {
            return false;
        };
        if self.is_known.load(Ordering::Relaxed) {
            return true;
        }
        let is_own = heard.has(server);
        self.is_known.fetch_or(is_own, Ordering::Relaxed);
        is_own
    }
}
