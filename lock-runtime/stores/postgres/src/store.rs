//! [`PostgresStore`]: a client's handle to its connections.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_store::{
    Answer, ClientId, Failure, Instant, LockKey, Mutex, Namespace, Owner, StoreError,
    StoreErrorKind, SweepingMap,
};
use tokio::sync::{oneshot, watch};
use tokio_postgres::Row;

use crate::connection::Connection;
use crate::errors::{Effect, TOO_LATE, effect_of, is_kept, of_postgres};
use crate::flights::Flights;
use crate::hearer::Hearer;
use crate::link::LINK;
use crate::listen::Hearing;
use crate::news::News;
use crate::pool::Pool;
use crate::rows::{Read, Values};
use crate::statement::{Param, Statement};

/// How long after its time limit a statement may still begin: clocks drift, and a server is slow.
pub(crate) const SLACK: Duration = Duration::from_secs(1);

/// A client's handle.
pub(crate) struct PostgresStore {
    pub(crate) pool: Arc<Pool>,
    pub(crate) client: ClientId,
    pub(crate) namespace: Namespace,
    pub(crate) hearer: Hearer,
    /// How long after its sending a statement may begin at most.
    pub(crate) late: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) hearing: watch::Receiver<Hearing>,
    /// Ends the task that listens. `None` if there is none.
    pub(crate) open: Mutex<Option<oneshot::Sender<()>>>,
    pub(crate) command_timeout: Duration,
    pub(crate) flights: Flights,
    /// How often each waiting request was told to look again, and when last.
    pub(crate) looks: Mutex<SweepingMap<Owner, (u32, Instant)>>,
    /// Whether it may have a place in some queue.
    pub(crate) has_waited: AtomicBool,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("PostgresStore");
        debug.field("server", &self.server());
        debug.field("namespace", &self.namespace);
        debug.finish_non_exhaustive()
    }
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
        kept: impl FnOnce() -> T,
    ) -> Result<Answer<T>, Failure> {
        match self.carry_out(by, &statement, read).await {
            Outcome::Done(value) => Ok(Answer::new(value, LINK)),
            Outcome::Kept(_) => Ok(Answer::new(kept(), LINK)),
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
            let names = statement.names();
            let connection = match self.flights.connection_of(names, clock.now()) {
                Some(connection) => connection,
                None => match self.pool.get(by).await {
                    Ok(connection) => connection,
                    Err(error) => return Outcome::Failed(Failure::without_effect(error)),
                },
            };
            let busy = connection.begin();
            let sent = clock.now();
            let flight = self.flights.begin(&connection, names, sent);
            let rows = connection.run(statement, sent, self.late);
            let rows = clock.by_from(sent, by, rows).await;
            flight.land();
            drop(busy);
            let until = sent + self.late + connection.uncertainty();
            let error = match rows {
                None => {
                    self.pool.doubt(&connection);
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
        let hints = self.hints(granted);
        if !hints.is_empty() {
            self.send(hints);
        }
    }

    /// The same, and waits until it is done: the client may close after this.
    pub(crate) async fn tell_granted_now(&self, granted: Vec<(Owner, Option<u64>)>, by: Instant) {
        let hints = self.hints(granted);
        if !hints.is_empty() {
            let sent = send(&self.pool, &hints, by, self.late);
            let _ = self.pool.clock.by(by, sent).await;
        }
    }

    /// What to tell other clients. This one is told at once.
    fn hints(&self, granted: Vec<(Owner, Option<u64>)>) -> Vec<Statement> {
        let mut hints = Vec::new();
        for (owner, token) in granted {
            let news = News::Granted { owner, token };
            if owner.client == self.client {
                self.hearer.hear(news);
            } else {
                hints.extend(telling(owner.client, &news));
            }
        }
        hints
    }

    /// Sends hints in their order. Nobody waits for them.
    fn send(&self, hints: Vec<Statement>) {
        let (pool, late) = (Arc::clone(&self.pool), self.late);
        let by = pool.clock.now() + self.command_timeout;
        self.pool.clock.spawn(async move {
            let _ = pool.clock.by(by, send(&pool, &hints, by, late)).await;
        });
    }

    /// It may have a place from now on, which it gives up when it is closed.
    pub(crate) fn waits(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
        // Nobody may ask for their names again.
        self.flights.forget(self.pool.clock.now(), self.late);
    }

    /// Gives up all places.
    pub(crate) async fn leave(&self, by: Instant) {
        if self.has_waited.swap(false, Ordering::Relaxed)
            && self.call(by, self.leaving(), |_| Ok(())).await.is_err()
        {
            tracing::debug!("a client's places are left to be passed over");
        }
    }

    fn leaving(&self) -> Statement {
        let client = Param::bytes(self.client.0.to_be_bytes().to_vec());
        Statement::new("SELECT lock_store.leave($1)", vec![client])
    }

    /// Closes the connections. If nobody has waited for it to [leave](Self::leave), it still tries.
    pub(crate) fn end(&self) {
        let connections = self.pool.close();
        if !self.has_waited.swap(false, Ordering::Relaxed) {
            return;
        }
        let (clock, leaving, late) = (self.pool.clock.clone(), self.leaving(), self.late);
        let by = clock.now() + self.command_timeout;
        self.pool.clock.spawn(async move {
            if let Some(connection) = connections.first() {
                let left = connection.run(&leaving, clock.now(), late);
                let _ = clock.by(by, left).await;
            }
        });
    }

    pub(crate) async fn connection(&self, by: Instant) -> Result<Arc<Connection>, StoreError> {
        self.pool.get(by).await
    }
}

async fn send(pool: &Arc<Pool>, hints: &[Statement], by: Instant, late: Duration) {
    if let Ok(connection) = pool.get(by).await {
        let busy = connection.begin();
        for hint in hints {
            let _ = connection.run(hint, pool.clock.now(), late).await;
        }
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
