//! [`Turns`]: a session that may be a pooler's carries out one statement at a time.
//!
//! A pooler gives each transaction to any session. There, a name stands for whatever some other
//! process prepared under it, so there no statement has one. A statement without a name is sent in
//! one piece. A pooler keeps the piece together only while nothing else is under way: before 1.21,
//! pgbouncer gives the session away at the end of one statement although part of the next has come.

use std::sync::Arc;

use lock_store::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Client;

use crate::own_session::OwnSession;

#[derive(Clone)]
pub(crate) struct Turns {
    own: OwnSession,
    /// For a session that may be a pooler's.
    one: Arc<Semaphore>,
    client: Arc<Client>,
    clock: Clock,
}

/// The right to send a statement. If it is dropped before it has [ended](Self::end), the next one
/// waits until the server has answered all.
pub(crate) struct SessionTurn {
    permit: Option<OwnedSemaphorePermit>,
    client: Arc<Client>,
    clock: Clock,
}

impl Turns {
    pub(crate) fn new(own: OwnSession, client: &Arc<Client>, clock: &Clock) -> Self {
        Self {
            own,
            one: Arc::new(Semaphore::new(1)),
            client: Arc::clone(client),
            clock: clock.clone(),
        }
    }

    /// In the order of asking.
    pub(crate) async fn next(&self) -> SessionTurn {
        let permit = match self.own.may_be_own() {
            true => None,
            // It is never closed.
            false => Arc::clone(&self.one).acquire_owned().await.ok(),
        };
        SessionTurn {
            permit,
            client: Arc::clone(&self.client),
            clock: self.clock.clone(),
        }
    }
}

impl SessionTurn {
    /// The server has answered, to the end.
    pub(crate) fn end(mut self) {
        self.permit = None;
    }
}

impl Drop for SessionTurn {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let client = Arc::clone(&self.client);
        self.clock.spawn(async move {
            // One message, which is never taken apart. Without an answer, the session is gone.
            let _ = client.batch_execute("").await;
            drop(permit);
        });
    }
}
