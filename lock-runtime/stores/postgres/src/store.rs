//! [`PostgresStore`]: a client's handle to its connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{
    Acquire, Acquired, Answer, ClientId, Failure, Instant, LockKey, Mutex, Namespace, Owner,
    Release, Released, Replied, StoreError, StoreErrorKind, SweepingMap,
};
use tokio::sync::{oneshot, watch};
use tokio_postgres::{Error, Row};

use crate::connection::Connection;
use crate::errors::{Effect, effect_of, of_postgres};
use crate::flights::Flights;
use crate::listen::Hearing;
use crate::news::{GrantNews, Hearer, News};
use crate::placed::Placed;
use crate::pool::Pool;
use crate::rows::{Read, Values};
use crate::statement::{LINK, Param, Statement};
use crate::together::Together;

/// How long after its time limit a statement may still begin: clocks drift, and a server is slow.
pub(crate) const SLACK: Duration = Duration::from_secs(1);

/// The pause before a statement is repeated that met a locked row.
pub(crate) const LOCKED_PAUSE: Duration = Duration::from_millis(20);
/// The least time that must be left for a repeat, which may take as long as the try before it.
pub(crate) const LOCKED_TRY: Duration = Duration::from_millis(100);
/// How long the functions wait for a row.
pub(crate) const WAITS_FOR_ROW: Duration = Duration::from_millis(200);
/// A server that has not answered for this long stands still, whatever it said before.
const LOCKED_LASTS: Duration = Duration::from_secs(1);

/// A client's handle.
pub(crate) struct PostgresStore {
    /// Itself, for tasks that end after their callers.
    pub(crate) me: Weak<Self>,
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
    pub(crate) placed: Placed,
    /// Whether it may have a place in some queue.
    pub(crate) has_waited: AtomicBool,
    /// When a statement about several rows last met one that somebody keeps, and how long it took.
    pub(crate) row_kept: Mutex<Option<(Instant, Duration)>>,
    pub(crate) acquiring: Together<Acquire, Acquired>,
    pub(crate) releasing: Together<Release, Released>,
}

lock_store::show!(PostgresStore as it: server = it.server(), namespace = it.namespace);

impl PostgresStore {
    /// The name of a lock, a latch or a bucket in the tables.
    pub(crate) fn name(&self, key: &LockKey) -> Vec<u8> {
        key.full_name(&self.namespace).into_bytes()
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
    ) -> Replied<T> {
        let clock = &self.pool.clock;
        let began = clock.now();
        let mut last_locked: Option<(Instant, StoreError)> = None;
        loop {
            let sent = self.send_statement(&statement, by).await;
            let now = clock.now();
            let locked = || {
                let last = last_locked.clone()?;
                is_lately(last.0, now).then_some(last.1)
            };
            let sent = match sent {
                Ok(sent) => sent,
                Err(error) => return Err(Failure::without_effect(locked().unwrap_or(error))),
            };
            // One that outlasts its request keeps the connection from others.
            let has_time = || now + LOCKED_TRY.max(LOCKED_PAUSE + (now - sent.at)) <= by;
            let connection = &sent.connection;
            let unknown = |error| Failure::unknown(error, LINK).until(sent.until);
            let describe = |error: &Error| of_postgres(error, self.server());
            let failed = match sent.rows {
                None => {
                    return Err(unknown(locked().unwrap_or_else(|| {
                        self.pool.doubt(connection);
                        self.silence()
                    })));
                }
                Some(Err(error)) => error,
                // If they can't be read, it was carried out, and what came of it can't be told.
                Some(Ok(rows)) => {
                    self.note_answer(&statement, now);
                    let value = read(&rows).map_err(|error| unknown(describe(&error)))?;
                    return Ok(Answer::new(value, LINK));
                }
            };
            let error = describe(&failed);
            let effect = effect_of(&failed);
            if effect != Effect::Unknown {
                self.note_answer(&statement, now);
            }
            match effect {
                Effect::Repeat if now < by => {}
                // Over a new session, which sees what is there before it is used.
                Effect::Gone if connection.since() < began => self.pool.retire_all(),
                // It has time left: the server's clock was set since the connection began.
                Effect::Late if connection.since() < began && now < by => self.pool.retire_all(),
                Effect::RowLocked if statement.is_repeated && has_time() => {
                    last_locked = Some((now, error));
                    clock.sleep_until(now + LOCKED_PAUSE).await;
                }
                Effect::Unknown => {
                    connection.retire();
                    return Err(unknown(error));
                }
                _ => {
                    if effect == Effect::Late || is_standby(&failed) {
                        connection.retire();
                    }
                    return Err(Failure::without_effect(error));
                }
            }
        }
    }

    fn note_answer(&self, statement: &Statement, now: Instant) {
        self.acquiring.note_answer(statement.names(), now);
        self.releasing.note_answer(statement.names(), now);
    }

    /// Sends a statement once. An error has had no effect.
    async fn send_statement(
        &self,
        statement: &Statement,
        by: Instant,
    ) -> Result<SentStatement, StoreError> {
        let (names, clock) = (statement.names(), &self.pool.clock);
        let connection = self.connection_for(names, by).await?;
        let sent = clock.now();
        let for_many = statement.is_for_many;
        let flight = self.flights.begin(&connection, names, sent, for_many);
        let rows = connection.run(statement, sent, self.late);
        let rows = clock.by_from(sent, by, rows).await;
        flight.land();
        Ok(SentStatement {
            at: sent,
            until: sent + self.late + connection.uncertainty(),
            connection,
            rows,
        })
    }

    pub(crate) fn silence(&self) -> StoreError {
        self.error(StoreErrorKind::Timeout, "it is slow, or stands still")
    }

    /// Whatever the statements of these names must follow, or any.
    async fn connection_for(
        &self,
        names: &[Vec<u8>],
        by: Instant,
    ) -> Result<Arc<Connection>, StoreError> {
        match self.flights.connection_of(names, self.pool.clock.now()) {
            Some(connection) => Ok(connection),
            None => self.pool.get(by).await,
        }
    }

    /// Tells those whose turn has come. This client is told at once. The others are told by a task,
    /// which ends also if the caller does not wait for it.
    pub(crate) fn notify_granted(&self, granted: Vec<GrantNews>) -> Option<oneshot::Receiver<()>> {
        let (own, others): (Vec<_>, Vec<_>) = granted
            .into_iter()
            .partition(|(owner, _)| owner.client == self.client);
        if !own.is_empty() {
            self.hearer.on_news(News::Granted(own));
        }
        let hints = notification(&News::granted(others))?;
        let (pool, late) = (Arc::clone(&self.pool), self.late);
        let by = pool.clock.now() + self.command_timeout;
        let (done, ended) = oneshot::channel();
        self.pool.clock.spawn(async move {
            let _ = pool.clock.by(by, send(&pool, &hints, by, late)).await;
            let _ = done.send(());
        });
        Some(ended)
    }

    /// Notifies, and waits until it is done: the program may end after this.
    pub(crate) async fn notify_granted_now(&self, granted: Vec<GrantNews>, by: Instant) {
        if let Some(ended) = self.notify_granted(granted) {
            let _ = self.pool.clock.by(by, ended).await;
        }
    }

    /// Notes that the client may have a place from now on. It gives its places up when it closes.
    pub(crate) fn note_wait(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
        // Nobody may ask for their names again.
        self.flights.forget(self.pool.clock.now(), self.late);
    }

    /// Gives up all places.
    pub(crate) async fn leave(&self, by: Instant) {
        if !self.has_waited.swap(false, Ordering::Relaxed) {
            return;
        }
        let left = self.call(
            by,
            self.leaving(),
            read_first_row(|row| row.grants(), Vec::new),
        );
        match left.await {
            Ok(answer) => self.notify_granted_now(answer.value, by).await,
            Err(_) => tracing::debug!("a client's places are left to be suspended"),
        }
    }

    fn leaving(&self) -> Statement {
        let client = Param::bytes(self.client.0.to_be_bytes().to_vec());
        Statement::new(
            "SELECT told, tokens FROM lock_store.leave($1)",
            vec![client],
        )
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
            let Some(connection) = connections.first() else {
                return;
            };
            let leaves = async {
                let rows = connection.run(&leaving, clock.now(), late).await?;
                let granted = read_first_row(|row| row.grants(), Vec::new)(&rows)?;
                if let Some(hints) = notification(&News::granted(granted)) {
                    connection.run(&hints, clock.now(), late).await?;
                }
                Ok::<_, tokio_postgres::Error>(())
            };
            let _ = clock.by(by, leaves).await;
        });
    }
}

/// What came of a statement.
struct SentStatement {
    connection: Arc<Connection>,
    /// When it was sent.
    at: Instant,
    /// The server may begin with it until then.
    until: Instant,
    /// `None`: there was no answer in time.
    rows: Option<Result<Vec<Row>, Error>>,
}

async fn send(pool: &Arc<Pool>, hints: &Statement, by: Instant, late: Duration) {
    if let Ok(connection) = pool.get(by).await {
        let _ = connection.run(hints, pool.clock.now(), late).await;
    }
}

/// The statement that sends news, all at once. `None` if there are none, or too long ones only.
pub(crate) fn notification(news: &[(ClientId, News)]) -> Option<Statement> {
    let written = news
        .iter()
        .filter_map(|(to, news)| Some((to, news.write()?)));
    let (clients, texts): (Vec<_>, Vec<_>) = written
        .map(|(to, text)| (to.0.to_be_bytes().to_vec(), text))
        .unzip();
    let sql = "SELECT lock_store.tell(client, message) \
               FROM unnest($1::bytea[], $2::text[]) AS news (client, message)";
    let is_empty = clients.is_empty();
    let params = vec![Param::ManyBytes(clients), Param::ManyTexts(texts)];
    (!is_empty).then(|| Statement::new(sql, params))
}

/// True if another connection may do better: this one's server has become a standby.
fn is_standby(error: &Error) -> bool {
    error.code().is_some_and(|code| code.code() == "25006")
}

/// Whether what the server said then may still hold.
pub(crate) fn is_lately(at: Instant, now: Instant) -> bool {
    now < at + LOCKED_LASTS
}

/// Reads the first row; `none` says what it is if there is no row.
pub(crate) fn read_first_row<T>(
    read: impl Fn(Values<'_>) -> Read<T>,
    none: impl Fn() -> T,
) -> impl Fn(&[Row]) -> Read<T> {
    move |rows| {
        rows.first()
            .map_or_else(|| Ok(none()), |row| read(Values(row)))
    }
}
