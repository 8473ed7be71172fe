//! [`Prepared`]: what a session has parsed and planned already.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_store::{Clock, Mutex};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use crate::own_session::OwnSession;

/// The statements of a session that is the client's own. In one that may be a pooler's, a name
/// stands for whatever another process prepared under it (see [`turns`](crate::turns)), so there
/// nothing is prepared. The driver's names are numbers, and it lets nobody choose others.
pub(crate) struct Prepared {
    own: OwnSession,
    is_on: AtomicBool,
    /// By their text. `None` while the server is asked.
    known: Arc<Mutex<HashMap<&'static str, Option<Statement>>>>,
    client: Arc<Client>,
    clock: Clock,
}

impl Prepared {
    pub(crate) fn new(own: OwnSession, client: &Arc<Client>, clock: &Clock) -> Self {
        Self {
            own,
            is_on: AtomicBool::new(true),
            known: Arc::default(),
            client: Arc::clone(client),
            clock: clock.clone(),
        }
    }

    /// Carries out a statement. The first of a kind does not wait until it is prepared.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        if let Some(statement) = self.statement(sql, params) {
            let values: Vec<_> = params.iter().map(|(value, _)| *value).collect();
            let done = self.client.query(&statement, &values).await;
            match &done {
                // Nothing was carried out: something else in the session has dropped it, as
                // `DISCARD ALL`, or a migration has changed what it gives.
                Err(error) if is_forgotten(error) => self.is_on.store(false, Ordering::Relaxed),
                _ => return done,
            }
        }
        self.client.query_typed(sql, params).await
    }

    fn statement(
        &self,
        sql: &'static str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Option<Statement> {
        if !self.is_on.load(Ordering::Relaxed) || !self.own.is_own() {
            return None;
        }
        let mut known = self.known.lock();
        if let Some(statement) = known.get(sql) {
            return statement.clone();
        }
        known.insert(sql, None);
        let types: Vec<Type> = params.iter().map(|(_, of)| of.clone()).collect();
        let (client, all) = (Arc::clone(&self.client), Arc::clone(&self.known));
        self.clock.spawn(async move {
            // Where it can't be prepared, it goes on without.
            if let Ok(statement) = client.prepare_typed(sql, &types).await {
                all.lock().insert(sql, Some(statement));
            }
        });
        None
    }
}

fn is_forgotten(error: &Error) -> bool {
    let codes = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    error.code().is_some_and(|code| codes.contains(code))
}
