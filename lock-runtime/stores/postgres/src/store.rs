//! [`PostgresStore`]: a client's handle to its connections.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Answer, ClientId, Failure, Instant, LockKey, Mutex, Namespace, Owner, StoreError,
    StoreErrorKind,
};
use tokio::sync::{oneshot, watch};
use tokio_postgres::Row;

use crate::connection::Connection;
use crate::errors::{Effect, TOO_LATE, effect_of, is_kept, of_postgres};
use crate::link::LINK;
use crate::listen::Hearer;
use crate::news::News;
use crate::pool::Pool;
use crate::rows::{Read, Values};
use crate::statement::{Param, Statement};

/// How long after its time limit a statement may still begin: clocks drift, and a server is slow.
pub(crate) const SLACK: Duration = Duration::from_secs(1);

/// A client's handle.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pub(crate) pool: Arc<Pool>,
    pub(crate) client: ClientId,
    pub(crate) namespace: Namespace,
    pub(crate) hearer: Hearer,
    /// How long after its sending a statement may begin at most.
    pub(crate) late: Duration,
    pub(crate) connect_timeout: Duration,
    /// Whether the client listens now.
    pub(crate) listens: watch::Receiver<bool>,
    /// Ends the task that listens. `None` if there is none.
    pub(crate) open: Mutex<Option<oneshot::Sender<()>>>,
    pub(crate) command_timeout: Duration,
}

/// The end of a statement.
enum Outcome<T> {
    Done(T),
    /// An open `lock_check`, or a crowd, kept the row.
    Kept(StoreError),
    Failed(Failure),
}

impl PostgresStore {
    /// The name of a lock, a latch or a bucket in the tables.
    pub(crate) fn name(&self, key: &LockKey) -> Vec<u8> {
        let namespace = key.namespace().unwrap_or(&self.namespace);
        format!("{namespace}:{}", key.as_str()).into_bytes()
    }

    pub(crate) fn server(&self) -> &str {
        &self.pool.settings.server
    }

    pub(crate) fn error(&self, kind: StoreErrorKind, what: &str) -> StoreError {
        StoreError::new(kind, format!("{}: {what}", self.server()))
    }

    /// Carries out a statement and reads its rows.
    pub(crate) async fn call<T>(
        &self,
        by: Instant,
        statement: Statement,
        read: impl Fn(&[Row]) -> Read<T>,
    ) -> Result<Answer<T>, Failure> {
        match self.carry_out(by, &statement, read).await {
            Outcome::Done(value) => Ok(Answer::new(value, LINK)),
            Outcome::Kept(error) => Err(Failure::without_effect(error)),
            Outcome::Failed(failure) => Err(failure),
        }
    }

    /// The same, with a value for a row that others keep locked.
    pub(crate) async fn call_unless_kept<T>(
        &self,
        by: Instant,
        statement: Statement,
        read: impl Fn(&[Row]) -> Read<T>,
        kept: T,
    ) -> Result<Answer<T>, Failure> {
        match self.carry_out(by, &statement, read).await {
            Outcome::Done(value) => Ok(Answer::new(value, LINK)),
            Outcome::Kept(_) => Ok(Answer::new(kept, LINK)),
            Outcome::Failed(failure) => Err(failure),
        }
    }

    async fn carry_out<T>(
        &self,
        by: Instant,
        statement: &Statement,
        read: impl Fn(&[Row]) -> Read<T>,
    ) -> Outcome<T> {
        let clock = &self.pool.clock;
        loop {
            let connection = match self.pool.get(by).await {
                Ok(connection) => connection,
                Err(error) => return Outcome::Failed(Failure::without_effect(error)),
            };
            let busy = connection.begin();
            let sent = clock.now();
            let rows = connection.run(statement, sent, self.late);
            let rows = clock.by_from(sent, by, rows).await;
            drop(busy);
            let until = sent + self.late + connection.uncertainty();
            let error = match rows {
                None => {
                    connection.retire();
                    let error = self.error(StoreErrorKind::Timeout, "it is slow, or stands still");
                    return Outcome::Failed(Failure::unknown(error, LINK).until(until));
                }
                Some(Err(error)) => error,
                Some(Ok(rows)) => match read(&rows) {
                    Ok(value) => return Outcome::Done(value),
                    // It was carried out, and what came of it can't be told.
                    Err(error) => {
                        let error = of_postgres(&error, self.server());
                        return Outcome::Failed(Failure::unknown(error, LINK).until(until));
                    }
                },
            };
            let told = of_postgres(&error, self.server());
            match effect_of(&error) {
                Effect::Repeat if clock.now() < by => {}
                Effect::Unknown => {
                    connection.retire();
                    return Outcome::Failed(Failure::unknown(told, LINK).until(until));
                }
                _ if is_kept(&error) => return Outcome::Kept(told),
                _ => {
                    if is_over(&error) {
                        connection.retire();
                    }
                    return Outcome::Failed(Failure::without_effect(told));
                }
            }
        }
    }

    /// Tells those whose turn has come.
    pub(crate) fn tell_granted(&self, granted: Vec<(Owner, Option<u64>)>) {
        for (owner, token) in granted {
            let news = News::Granted { owner, token };
            if owner.client == self.client {
                self.hearer.hear(news);
            } else if let Some(statement) = telling(owner.client, &news) {
                self.send(statement);
            }
        }
    }

    /// Sends a hint. Nobody waits for it.
    fn send(&self, statement: Statement) {
        let (pool, late) = (Arc::clone(&self.pool), self.late);
        let by = pool.clock.now() + self.command_timeout;
        self.pool.clock.spawn(async move {
            let _ = pool.clock.by(by, send(&pool, &statement, by, late)).await;
        });
    }

    pub(crate) async fn connection(&self, by: Instant) -> Result<Arc<Connection>, StoreError> {
        self.pool.get(by).await
    }
}

async fn send(pool: &Arc<Pool>, statement: &Statement, by: Instant, late: Duration) {
    if let Ok(connection) = pool.get(by).await {
        let busy = connection.begin();
        let _ = connection.run(statement, pool.clock.now(), late).await;
        drop(busy);
    }
}

/// The statement that sends news. `None` if they are too long.
pub(crate) fn telling(to: ClientId, news: &News) -> Option<Statement> {
    Some(Statement::new(
        "SELECT lock_store.tell($1, $2)",
        vec![
            Param::bytes(to.0.to_be_bytes().to_vec()),
            Param::Text(news.write()?),
        ],
    ))
}

/// True if another connection may do better: this one's server has become a standby, or its clock
/// was set.
fn is_over(error: &tokio_postgres::Error) -> bool {
    let code = error.code().map(|code| code.code());
    matches!(code, Some(TOO_LATE | "25006"))
}

/// Reads one row.
pub(crate) fn one<T>(
    read: impl Fn(Values<'_>) -> Read<T>,
    none: impl Fn() -> T,
) -> impl Fn(&[Row]) -> Read<T> {
    move |rows| {
        rows.first()
            .map_or_else(|| Ok(none()), |row| read(Values(row)))
    }
}
