//! [`Pool`]: a client's connections, opened when they are needed.

use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::backoff;
use lock_store::{Clock, Instant, Listener, Mutex, StoreError, StoreErrorKind};
use tokio::sync::watch;

use crate::connection::Connection;
use crate::errors::of_old_credentials;
use crate::news::Hearer;
use crate::route::CONNECT_SLOW_TEXT;
use crate::url::Settings;

/// After an attempt to connect failed while others are connected, the next one waits.
const OPENS_AGAIN: Duration = Duration::from_secs(2);

/// An attempt takes less than so many times its limit: for credentials, names, and hosts that are
/// tried one after the other.
const LONGEST_ATTEMPT: u32 = 4;

/// At most this long after an attempt that only people can mend, the next one waits. Meanwhile the
/// error is the answer.
const TRIES_AGAIN: Duration = Duration::from_millis(500);

/// A client's connections.
pub(crate) struct Pool {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    hearer: Hearer,
    state: Mutex<PoolState>,
    /// Changes when an attempt to connect has ended.
    attempts: watch::Sender<u64>,
}

#[derive(Default)]
struct PoolState {
    connections: Vec<Arc<Connection>>,
    opening: usize,
    /// The number of attempts that failed, and why the last one did.
    failures: u64,
    error: Option<StoreError>,
    failed_at: Option<Instant>,
    /// How often in a row the server was there and could not be used, and until when it is left
    /// alone.
    refusals: u32,
    refused_until: Option<Instant>,
    /// How often a migration was applied by this client: what an attempt was refused that began
    /// before counts no more.
    migrations: u64,
    /// Connections that were opened before are not used.
    retired: Option<Instant>,
    /// Since when there is a connection.
    since: Option<Instant>,
    connects: u64,
    is_closed: bool,
}

/// What to do for a statement.
enum Choice {
    Use(Arc<Connection>),
    Wait { failures: u64, unanswered: usize },
    Refused(StoreError),
    Closed,
}

/// What is in the server does not suit. Credentials are not meant: the next ones may be right.
fn needs_an_operator(error: &StoreError) -> bool {
    matches!(
        error.kind(),
        StoreErrorKind::Misconfigured | StoreErrorKind::OtherVersion
    )
}

lock_store::show!(Pool as it: server = it.settings.server);

impl Pool {
    pub(crate) fn new(settings: Settings, clock: Clock, hearer: Hearer) -> Arc<Self> {
        Arc::new(Self {
            settings,
            clock,
            hearer,
            state: Mutex::default(),
            attempts: watch::Sender::new(0),
        })
    }

    fn error(&self, kind: StoreErrorKind, what: &str) -> StoreError {
        StoreError::new(kind, format!("{}: {what}", self.settings.server))
    }

    /// The connection with the least to do.
    pub(crate) async fn get(self: &Arc<Self>, by: Instant) -> Result<Arc<Connection>, StoreError> {
        let mut attempts = self.attempts.subscribe();
        let mut failures_before = None;
        loop {
            attempts.borrow_and_update();
            let silent = match self.choose() {
                Choice::Use(connection) => return Ok(connection),
                Choice::Refused(error) => return Err(error),
                Choice::Closed => {
                    return Err(self.error(StoreErrorKind::Disconnected, "it is closed"));
                }
                Choice::Wait {
                    failures,
                    unanswered,
                } => {
                    let before = *failures_before.get_or_insert(failures);
                    let error = self.state.lock().error.clone();
                    if failures > before
                        && let Some(error) = error
                    {
                        return Err(error);
                    }
                    unanswered
                }
            };
            if !matches!(self.clock.by(by, attempts.changed()).await, Some(Ok(()))) {
                return Err(self.took_too_long(silent));
            }
        }
    }

    /// The time of a statement ended before there was a connection for it; so many that are open
    /// have not answered. What the attempts learn that end between two statements is told here.
    fn took_too_long(&self, silent: usize) -> StoreError {
        let text = match silent {
            0 => CONNECT_SLOW_TEXT.to_owned(),
            1 => "a connection waits for its last answer".to_owned(),
            _ => format!("{silent} connections wait for their last answer"),
        };
        let error = self.error(StoreErrorKind::Timeout, &text);
        let state = self.state.lock();
        let lately = self.clock.now() - LONGEST_ATTEMPT * self.settings.route.limit - OPENS_AGAIN;
        // An attempt that was only slow tells nothing more.
        let is_telling = |last: &&StoreError| {
            state.failed_at >= Some(lately) && last.kind() != StoreErrorKind::Timeout
        };
        match state.error.as_ref().filter(is_telling) {
            Some(last) => last.of_last_attempt(error.detail()),
            None => error,
        }
    }

    fn choose(self: &Arc<Self>) -> Choice {
        let now = self.clock.now();
        let mut state = self.state.lock();
        if state.is_closed {
            return Choice::Closed;
        }
        let connections = &mut state.connections;
        connections.retain(|connection| connection.is_open(now));
        let is_fresh = |one: &Arc<Connection>| one.is_usable() && !one.is_old(now);
        let fresh = connections.iter().filter(|one| is_fresh(one)).count();
        connections.retain(|one| fresh == 0 || !one.is_old(now) || !one.is_idle());
        let usable = || connections.iter().filter(|one| one.is_usable());
        let best = usable().min_by_key(|one| (one.is_old(now), one.load()));
        let best = best.cloned();
        let usable = usable().count();
        let open = connections.len();
        let is_refused = best.is_none() && state.refused_until.is_some_and(|until| now < until);
        let refusal = match is_refused {
            true => state.error.clone(),
            false => None,
        };
        let is_idle = |one: &Arc<Connection>| one.load() == 0 && !one.is_old(now);
        let is_idle = best.as_ref().is_some_and(is_idle);
        let failed = state.failed_at;
        let rests = best.is_some() && failed.is_some_and(|at| now < at + OPENS_AGAIN);
        let most = match fresh {
            // All that wait need one, first of all.
            0 => 1,
            _ => self.settings.connections,
        };
        // Those that are not answered take room in the server, closed or not. It has few.
        let has_room = open + state.opening < 2 * self.settings.connections;
        let may_open = has_room && !is_idle && !rests && refusal.is_none();
        let opens = may_open && fresh + state.opening < most;
        state.opening += usize::from(opens);
        let (failures, unanswered) = (state.failures, open - usable);
        let migrations = state.migrations;
        if best.is_none() && state.since.take().is_some() {
            let error = self.error(StoreErrorKind::Disconnected, "the connections are gone");
            self.announce_loss(&error);
        }
        drop(state);
        if opens {
            self.clock.spawn(Arc::clone(self).open(migrations));
        }
        match (best, refusal) {
            (Some(connection), _) => Choice::Use(connection),
            (None, Some(error)) => Choice::Refused(error),
            (None, None) => Choice::Wait {
                failures,
                unanswered,
            },
        }
    }

    /// One attempt to connect, after this number of migrations.
    async fn open(self: Arc<Self>, migrations: u64) {
        let began = self.clock.now();
        let opened = Connection::open(&self.settings, &self.clock).await;
        let opened = opened.map(Arc::new);
        if let Ok(connection) = &opened {
            self.replace_when_old(connection);
        }
        self.finish_opening(opened, began, migrations);
        self.attempts.send_modify(|count| *count += 1);
    }

    /// Without a request, too: what was idle for long may have been cut off on the way, and the
    /// next request need not be the one that finds it.
    fn replace_when_old(self: &Arc<Self>, connection: &Arc<Connection>) {
        let (clock, at) = (self.clock.clone(), connection.old_at());
        let (pool, connection) = (Arc::downgrade(self), Arc::downgrade(connection));
        self.clock.spawn(async move {
            clock.sleep_until(at).await;
            let (pool, connection) = (pool.upgrade(), connection.upgrade());
            if let (Some(pool), Some(_)) = (pool, connection) {
                pool.choose();
            }
        });
    }

    // Observers are told under the lock, so that they hear it in its order.

    fn announce_loss(&self, error: &StoreError) {
        let server = &self.settings.server;
        self.hearer.listener.on_disconnected(server, error);
    }

    /// Notes that there is a connection.
    fn note_up(&self, state: &mut PoolState) {
        if state.since.is_none() && !state.is_closed {
            state.since = Some(self.clock.now());
            state.connects += 1;
            self.hearer.listener.on_connected(&self.settings.server);
        }
    }

    /// A statement was not answered in its time. Its connection gets no other until it has answered
    /// all that it has: a server goes on with a statement that its client no longer awaits.
    pub(crate) fn doubt(self: &Arc<Self>, connection: &Arc<Connection>) {
        if !connection.doubt() {
            return;
        }
        let (pool, answered) = (Arc::downgrade(self), connection.answered_all());
        let connection = Arc::downgrade(connection);
        self.clock.spawn(async move {
            // If it ends without that, it is closed.
            let trusts = answered.await;
            let (Some(pool), Some(connection)) = (pool.upgrade(), connection.upgrade()) else {
                return;
            };
            if trusts {
                connection.trust();
                let mut state = pool.state.lock();
                if connection.is_open(pool.clock.now()) {
                    pool.note_up(&mut state);
                }
            }
            pool.attempts.send_modify(|count| *count += 1);
        });
    }

    /// Ends an attempt to connect.
    fn finish_opening(
        &self,
        opened: Result<Arc<Connection>, StoreError>,
        began: Instant,
        migrations: u64,
    ) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.opening -= 1;
        match opened {
            // If it was closed meanwhile, so is this one.
            Ok(_) if state.is_closed => {}
            Ok(connection) => {
                state.failed_at = None;
                state.refusals = 0;
                state.refused_until = None;
                // What it was told may be older, too. Whoever waits opens another one.
                if state.retired.is_some_and(|at| began < at) {
                    return;
                }
                state.connections.push(connection);
                self.note_up(&mut state);
            }
            // Whoever waits tries again.
            Err(error) if needs_an_operator(&error) && migrations < state.migrations => {}
            Err(error) => {
                tracing::debug!(%error, "a connection to PostgreSQL can't be opened");
                // They were right before.
                let may_be_old = state.connects > 0 && self.settings.route.provider.is_some();
                let error = match error.kind() {
                    StoreErrorKind::Denied if may_be_old => of_old_credentials(&error),
                    _ => error,
                };
                state.failures += 1;
                if needs_an_operator(&error) {
                    state.refusals += 1;
                    let pause = backoff(state.refusals).min(TRIES_AGAIN);
                    state.refused_until = Some(now + pause);
                }
                let is_first = state.failed_at.replace(now).is_none();
                if is_first && state.connections.iter().any(|one| one.is_old(now)) {
                    tracing::warn!(
                        %error,
                        "an old connection to PostgreSQL can't be replaced yet, and is used on"
                    );
                }
                // Where the others lead now, as over a pooler, may be there, too.
                if error.kind() == StoreErrorKind::ReadOnly {
                    state.connections.retain(|one| !one.is_old(now));
                }
                state.error = Some(error);
            }
        }
    }

    /// Another migration may have been applied, or the server's clock was set: what was asked of
    /// older sessions counts no more.
    pub(crate) fn retire_all(&self) {
        let mut state = self.state.lock();
        state.retired = Some(self.clock.now());
        for connection in &state.connections {
            connection.retire();
        }
    }

    /// What was refused may be right now: the next request tries.
    pub(crate) fn try_again(&self) {
        let mut state = self.state.lock();
        state.refused_until = None;
        state.failed_at = None;
        state.migrations += 1;
    }

    /// Since when it is connected, and how often it was again.
    pub(crate) fn connected(&self) -> (Option<Instant>, u64) {
        let state = self.state.lock();
        (state.since, state.connects.saturating_sub(1))
    }

    /// Whether one takes statements now.
    pub(crate) fn has_connection(&self) -> bool {
        let now = self.clock.now();
        let state = self.state.lock();
        let mut connections = state.connections.iter();
        connections.any(|one| one.is_open(now) && one.is_usable())
    }

    /// Whether there is a connection. If there is none, one is opened: else a service that gets
    /// requests only while it has one would never have one.
    pub(crate) fn is_connected(self: &Arc<Self>) -> bool {
        if self.has_connection() {
            return true;
        }
        let now = self.clock.now();
        let failed = self.state.lock().failed_at;
        let rests = failed.is_some_and(|at| now < at + OPENS_AGAIN);
        !rests && matches!(self.choose(), Choice::Use(_))
    }

    /// Opens no more. What is open ends with the last handle.
    pub(crate) fn close(&self) -> Vec<Arc<Connection>> {
        let connections = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.connections)
        };
        self.attempts.send_modify(|count| *count += 1);
        connections
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}
