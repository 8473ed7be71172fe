//! [`Connection`]: one session of the server.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lock_store::{Clock, Instant, Layout, MIN_PAUSE, StoreError};
use tokio::sync::oneshot;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use crate::errors::{of_postgres, of_version};
use crate::greeting::{Greeting, no_answer};
use crate::identity::{KnownIdentity, ServerIdentity};
use crate::layouts::shedlock::greeting as shedlock;
use crate::login_process::login_process;
use crate::own_session::OwnSession;
use crate::prepared::Prepared;
use crate::route::PgSession;
use crate::statement::Statement;
use crate::turns::Turns;
use crate::url::Settings;

/// Another connection takes the place of one that is this old: its clock's distance to the server's
/// is known from its beginning, and clocks drift apart.
const OLD: Duration = Duration::from_secs(600);

/// How long one is used for want of another.
const LONGEST_LIFE: Duration = OLD.saturating_mul(2);

/// How far clocks may have drifted apart by then, and more.
const DRIFT: Duration = Duration::from_secs(1);

/// An open session. It ends when the last handle to it is dropped.
pub(crate) struct Connection {
    client: Arc<Client>,
    /// Of several, which one it is.
    server: Option<(Arc<KnownIdentity>, ServerIdentity)>,
    turns: Turns,
    prepared: Prepared,
    /// The statements under way, or waiting for their turn.
    load: AtomicUsize,
    is_retired: AtomicBool,
    /// A statement was not answered in its time.
    is_doubted: AtomicBool,
    /// When its credentials end soon.
    renew_at: Option<Instant>,
    /// Before and after the server was asked for its time, and what it said, in microseconds.
    asked: Instant,
    answered: Instant,
    micros: i64,
    /// Ends the task that carries the bytes.
    _open: oneshot::Sender<()>,
}

/// A statement under way.
struct BusyMark<'c>(&'c Connection);

impl Drop for BusyMark<'_> {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Ordering::Relaxed);
    }
}

const HELLO: &str = "
    SELECT lock_store.version(), lock_store.serves($1),
        (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::float8)::bigint,
        pg_catalog.pg_backend_pid()";

impl Connection {
    /// Connects, and checks that the server takes writes, and that the functions are there, may be
    /// used, and are nobody's who would get this user's rights by that.
    pub(crate) async fn open(settings: &Settings, clock: &Clock) -> Result<Self, StoreError> {
        let greet = |session| Self::greet(session, settings, clock);
        let route = &settings.route;
        let all_failed = || route.known.forget_if_replaced();
        route.connect(clock, greet, all_failed).await
    }

    async fn greet(
        session: PgSession,
        settings: &Settings,
        clock: &Clock,
    ) -> Result<Self, StoreError> {
        let route = &settings.route;
        let renew_at = session.renew_at;
        let (client, open, server) = drive(session, clock);
        // What is not this library's own has no functions.
        let greeting = match settings.layout {
            Layout::ShedLock => {
                shedlock::expect_table(&client, &server).await?;
                None
            }
            _ => Some(Greeting::of(&client, &server).await?),
        };
        // Also of a single host: its name may lead to several, or to another one by and by.
        let identity = ServerIdentity::of(&client).await;
        if let Some(identity) = identity {
            route.known.check(identity, &server)?;
        }
        if let Some(greeting) = &greeting {
            greeting.expect_usable(&server)?;
        }
        let asked = clock.now();
        let failed = |error: Error| of_postgres(&error, &server);
        let own: (&(dyn ToSql + Sync), Type) = (&crate::VERSION, Type::INT4);
        let rows = match greeting {
            Some(_) => client.query_typed(HELLO, &[own]).await,
            None => client.query_typed(shedlock::HELLO, &[]).await,
        };
        let rows = rows.map_err(failed)?;
        let answered = clock.now();
        let row = rows.first().ok_or_else(|| no_answer(&server))?;
        if !row.try_get::<_, bool>(1).map_err(failed)? {
            return Err(of_version(row.try_get(0).map_err(failed)?, &server));
        }
        if let Some(greeting) = &greeting {
            greeting.expect_complete(&server)?;
        }
        let client = Arc::new(client);
        let is_known = login_process(&client).await == Some(row.try_get(3).map_err(failed)?);
        let own = OwnSession::new(is_known, &route.heard, &server);
        Ok(Self {
            server: identity.map(|identity| (Arc::clone(&route.known), identity)),
            turns: Turns::new(own.clone(), &client, clock),
            prepared: Prepared::new(own, &client, clock),
            client,
            load: AtomicUsize::new(0),
            is_retired: AtomicBool::new(false),
            is_doubted: AtomicBool::new(false),
            renew_at,
            asked,
            answered,
            micros: row.try_get(2).map_err(failed)?,
            _open: open,
        })
    }

    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Takes no more statements. False if that is so already.
    pub(crate) fn retire(&self) -> bool {
        !self.is_retired.swap(true, Ordering::Relaxed)
    }

    /// Takes no statements until it has answered all that it has. False if that is so already.
    pub(crate) fn doubt(&self) -> bool {
        !self.is_doubted.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn trust(&self) {
        self.is_doubted.store(false, Ordering::Relaxed);
    }

    /// Resolves to true when all that was sent before is answered, to false if the session ends
    /// first. It has no handle to this value, which keeps the session open: a doubted session that
    /// nobody uses any more ends all the same.
    pub(crate) fn answered_all(&self) -> impl Future<Output = bool> + use<> {
        let (turns, client) = (self.turns.clone(), Arc::clone(&self.client));
        async move {
            let turn = turns.next().await;
            let is_answered = client.batch_execute("").await.is_ok();
            turn.end();
            is_answered
        }
    }

    /// From when on another one is to take its place.
    pub(crate) fn old_at(&self) -> Instant {
        let at = self.answered + OLD;
        // Where credentials end sooner than a session is made, each is used all the same.
        let of_credentials = |renew_at: Instant| renew_at.max(self.answered + MIN_PAUSE).min(at);
        self.renew_at.map_or(at, of_credentials)
    }

    /// Whether it takes statements now, or will when it has answered those that it has.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        let of = self.server.as_ref();
        let is_replaced = of.is_some_and(|(known, identity)| known.is_past(*identity));
        let is_retired = self.is_retired.load(Ordering::Relaxed);
        let is_over = now > self.answered + LONGEST_LIFE;
        !is_retired && !is_replaced && !is_over && !self.client.is_closed()
    }

    fn is_doubted(&self) -> bool {
        self.is_doubted.load(Ordering::Relaxed)
    }

    /// Whether it takes statements, while it is open.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_doubted()
    }

    /// Whether it takes statements only as long as no other one can.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        now >= self.old_at()
    }

    /// Whether nobody waits for an answer of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.load() == 0 && !self.is_doubted()
    }

    /// Sends a statement, which the server does not begin so long after `now` as `late` and this
    /// connection's [uncertainty](Self::uncertainty) say.
    pub(crate) async fn run(
        &self,
        statement: &Statement,
        now: Instant,
        late: Duration,
    ) -> Result<Vec<Row>, Error> {
        self.load.fetch_add(1, Ordering::Relaxed);
        let _busy = BusyMark(self);
        let since = (now + late).saturating_duration_since(self.asked);
        let since = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let deadline = self.micros.saturating_add(since);
        let params = statement.params.iter();
        let params: Vec<_> = params.map(|param| param.typed(&deadline)).collect();
        let turn = self.turns.next().await;
        let done = self.prepared.query(statement.sql, &params).await;
        // An error comes before the end of the server's answer.
        if done.is_ok() {
            turn.end();
        }
        done
    }

    /// By how much the server's clock may be behind what this connection takes it for.
    pub(crate) fn uncertainty(&self) -> Duration {
        (self.answered - self.asked) + DRIFT
    }

    /// When it was opened.
    pub(crate) fn since(&self) -> Instant {
        self.answered
    }
}

/// Carries the bytes of a session in the background, until what it gives is dropped.
pub(crate) fn drive(session: PgSession, clock: &Clock) -> (Client, oneshot::Sender<()>, String) {
    let PgSession {
        client,
        mut messages,
        server,
        ..
    } = session;
    let (open, closed) = oneshot::channel();
    clock.spawn(until_closed(closed, async move {
        // Whoever waits for an answer gets the error.
        while messages.next().await.is_some() {}
    }));
    (client, open, server)
}

/// Works until the other end of `closed` is dropped.
pub(crate) async fn until_closed(closed: oneshot::Receiver<()>, work: impl Future<Output = ()>) {
    tokio::select! {
        _ = closed => {}
        () = work => {}
    }
}
