//! [`Subscriber`]: listens on the client's own channel, over a session of its own.
//!
//! A pooler takes `LISTEN`, and nothing is heard. So the subscription counts when a message to the
//! client itself has come, which was sent over another session while this one was idle: in the same
//! session it comes back through a pooler, too.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::backoff;
use lock_store::{ClientId, Clock, Listener, StoreError, StoreErrorKind};
use tokio::sync::{Notify, oneshot, watch};
use tokio_postgres::{AsyncMessage, Client, Error, SimpleQueryMessage};

use crate::connection::{drive, until_closed};
use crate::greeting::Greeting;
use crate::identity::{KnownIdentity, ServerIdentity};
use crate::news::{Hearer, News, channel};
use crate::pool::Pool;
use crate::route::{PgSession, Route};
use crate::statement::{Param, Statement};

/// What a client tells itself.
const PROOF: &str = "1 proof";
/// How long its message may take.
const COMES_WITHIN: Duration = Duration::from_millis(400);
/// How often it is sent.
const SENDS: usize = 2;
/// After this time, a subscription that heard nothing is tried again. After the next, twice that.
const TRIES_AGAIN: Duration = Duration::from_secs(60);
/// The longest of these pauses.
const TRIES_AT_LAST: Duration = Duration::from_secs(960);
/// After this many failures in a row it is not only the server that restarts.
const FAILURES: u32 = 3;
/// How often the one is looked for that was told to listen, without a session for oneself.
const LOOKS: usize = 4;
/// The time for such a look: the pooler may have no session now.
const LOOKS_WITHIN: Duration = Duration::from_secs(1);
/// The pause after such a look.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// The numbers of a pooler's sessions that are then kept at once, to look for it among them. Who
/// keeps them keeps them from everybody else.
const UNLISTENS: [usize; 4] = [2, 4, 8, 8];
/// The time for each of these sessions.
const UNLISTENS_WITHIN: Duration = Duration::from_millis(100);
/// The pause before the next of these tries: others may have had the one, or all. It doubles.
const UNLISTEN_PAUSE: Duration = Duration::from_millis(300);

/// Whether a client hears what others tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// Not yet, or its connection is gone.
    Unknown,
    Proved,
    /// No: why, and what to do, for people.
    Deaf(Arc<str>),
}

impl Hearing {
    pub(crate) fn is_proved(&self) -> bool {
        *self == Self::Proved
    }
}

const MEANS: &str = "so those who wait are not told of a release and ask again, and nobody can say \
                     who holds a lock";
const PAST_A_POOLER: &str = "name the server itself in the URL, past a pooler, as \
                             `listen=db.example:5432`, or write `listen=off`";

/// Why nothing is heard, what that means, and what to do.
fn deaf(reason: &str) -> Hearing {
    Hearing::Deaf(format!("{reason}; {MEANS}: {PAST_A_POOLER}").into())
}

/// The same of a server that says itself what to do.
fn refused(error: &StoreError) -> Hearing {
    Hearing::Deaf(
        format!("it can't listen (`listen=` in the URL, or its hosts), {MEANS}: {error}").into(),
    )
}

/// What comes instead of a server's answer says nothing about the server.
fn is_refusal(error: &StoreError) -> bool {
    use StoreErrorKind::{Disconnected, Loading, Timeout};
    !matches!(error.kind(), Disconnected | Loading | Timeout)
}

pub(crate) struct Subscriber {
    route: Route,
    client: ClientId,
    hearer: Hearer,
    /// The other sessions.
    pool: Weak<Pool>,
    /// For people.
    server: String,
    clock: Clock,
    hearing: watch::Sender<Hearing>,
}

enum SubscriptionEnd {
    /// It was proved, and its connection is gone; or another server is used now.
    Gone,
    /// It could not be made.
    Failed(String),
    /// The server refused it.
    Refused(StoreError),
    /// It was made, and nothing was heard.
    Silent,
}

impl Subscriber {
    pub(crate) fn new(
        route: Route,
        client: ClientId,
        pool: &Arc<Pool>,
        hearer: Hearer,
        hearing: watch::Sender<Hearing>,
    ) -> Self {
        Self {
            route,
            client,
            hearer,
            pool: Arc::downgrade(pool),
            server: pool.settings.server.clone(),
            clock: pool.clock.clone(),
            hearing,
        }
    }

    /// Listens until `closed` is dropped.
    pub(crate) fn start(self, closed: oneshot::Receiver<()>) {
        let clock = self.clock.clone();
        clock.spawn(until_closed(closed, self.run()));
    }

    async fn run(self) {
        let (mut failures, mut silences, mut is_told) = (0, 0, false);
        loop {
            let mut pause = None;
            let found = match self.subscribe().await {
                SubscriptionEnd::Gone => {
                    (failures, silences) = (1, 0);
                    Hearing::Unknown
                }
                SubscriptionEnd::Failed(error) => {
                    failures += 1;
                    tracing::debug!(error, "a connection to listen on fails");
                    self.after(failures, || deaf(&format!("it can't listen ({error})")))
                }
                SubscriptionEnd::Refused(error) => {
                    failures += 1;
                    tracing::debug!(%error, "a connection to listen on is refused");
                    self.after(failures, || refused(&error))
                }
                SubscriptionEnd::Silent => {
                    pause = Some(pause_after(silences));
                    silences += 1;
                    deaf(
                        "`LISTEN` is accepted and nothing is heard, as behind a pooler that gives \
                         each transaction to any session",
                    )
                }
            };
            if let Hearing::Deaf(text) = &found
                && !std::mem::replace(&mut is_told, true)
            {
                tracing::warn!(server = %self.server, "the lock store: {text}");
            }
            self.hearing.send_replace(found);
            let until = self.clock.now() + pause.unwrap_or_else(|| backoff(failures));
            self.clock.sleep_until(until).await;
        }
    }

    /// That, if it failed often and only this fails.
    fn after(&self, failures: u32, deaf: impl FnOnce() -> Hearing) -> Hearing {
        match failures >= FAILURES && self.is_pool_connected() {
            false => Hearing::Unknown,
            true => deaf(),
        }
    }

    /// The client's other connections work.
    fn is_pool_connected(&self) -> bool {
        let pool = self.pool.upgrade();
        pool.is_some_and(|pool| pool.has_connection())
    }

    async fn subscribe(&self) -> SubscriptionEnd {
        let (session, identity) = match self.connect().await {
            Ok(connected) => connected,
            Err(error) if is_refusal(&error) => return SubscriptionEnd::Refused(error),
            Err(error) => return SubscriptionEnd::Failed(error.detail().to_owned()),
        };
        let PgSession {
            client: session,
            mut messages,
            server,
            ..
        } = session;
        let proof = Notify::new();
        let hears = async {
            while let Some(message) = messages.next().await {
                let AsyncMessage::Notification(message) = message else {
                    continue;
                };
                match message.payload() {
                    PROOF => proof.notify_one(),
                    payload => News::read(payload).into_iter().for_each(|news| {
                        self.hearer.on_news(news);
                    }),
                }
            }
        };
        tokio::select! {
            () = hears => match self.hearing.borrow().is_proved() {
                true => SubscriptionEnd::Gone,
                false => SubscriptionEnd::Failed("the connection ended".to_owned()),
            },
            () = self.until_past(identity) => SubscriptionEnd::Gone,
            end = self.listen(&session, &proof, &server) => end,
        }
    }

    async fn connect(&self) -> Result<(PgSession, Option<ServerIdentity>), StoreError> {
        let known = &self.route.known;
        let greet = |session| greet(session, known);
        self.route.connect(&self.clock, greet, || ()).await
    }

    /// Until its client uses another server: nobody tells it anything here any more. A server that
    /// was replaced may leave the session open.
    async fn until_past(&self, identity: Option<ServerIdentity>) {
        match identity {
            Some(identity) => self.route.known.until_past(identity).await,
            None => std::future::pending().await,
        }
    }

    /// What it gives within the limit, or why it gives nothing.
    async fn in_time<T>(&self, step: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
        self.within(self.route.limit, step).await
    }

    async fn within<T>(
        &self,
        limit: Duration,
        step: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, String> {
        let by = self.clock.now() + limit;
        match self.clock.by(by, step).await {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(text_of(&error)),
            None => Err("it takes too long".to_owned()),
        }
    }

    /// Ends if it can't, or hears nothing.
    async fn listen(&self, session: &Client, proof: &Notify, server: &str) -> SubscriptionEnd {
        let channel = channel(self.client);
        let listens = format!("LISTEN {channel}; SELECT pg_backend_pid()");
        let process = match self.in_time(session.simple_query(&listens)).await {
            Ok(rows) => process(&rows),
            Err(text) => return SubscriptionEnd::Failed(text),
        };
        for _ in 0..SENDS {
            if let Err(text) = self.notify_itself().await {
                return SubscriptionEnd::Failed(text);
            }
            let by = self.clock.now() + COMES_WITHIN;
            if self.clock.by(by, proof.notified()).await.is_some() {
                self.route.heard.note(server);
                self.hearing.send_replace(Hearing::Proved);
                self.hearer.listener.recheck();
                return std::future::pending().await;
            }
        }
        self.route.heard.forget(server);
        self.unlisten(session, &channel, process.as_deref()).await;
        SubscriptionEnd::Silent
    }

    /// As far as the pooler allows.
    async fn unlisten(&self, session: &Client, channel: &str, process: Option<&str>) {
        let unlisten = format!("UNLISTEN {channel}; SELECT pg_backend_pid()");
        // A pooler often gives the session next that it used last.
        for _ in 0..LOOKS {
            let limit = self.route.limit.min(LOOKS_WITHIN);
            let rows = self.within(limit, session.simple_query(&unlisten)).await;
            if rows.is_ok_and(|rows| self::process(&rows).as_deref() == process) {
                return;
            }
            self.pause(LOOK_PAUSE).await;
        }
        let mut pause = UNLISTEN_PAUSE;
        for most in UNLISTENS {
            if self.unlisten_among(most, channel, process).await {
                return;
            }
            self.pause(pause).await;
            pause *= 2;
        }
    }

    async fn pause(&self, pause: Duration) {
        self.clock.sleep_until(self.clock.now() + pause).await;
    }

    /// The pooler gives another session as long as one is in a transaction. True if the session of
    /// this process was among them.
    async fn unlisten_among(&self, most: usize, channel: &str, process: Option<&str>) -> bool {
        let unlisten = format!("BEGIN; UNLISTEN {channel}; SELECT pg_backend_pid()");
        let mut sessions = Vec::new();
        // All of them first: who keeps some must not wait for others.
        for _ in 0..most {
            match self.connect().await {
                Ok((session, _)) => sessions.push(drive(session, &self.clock)),
                Err(_) => break,
            }
        }
        let (mut kept, mut is_found) = (0, false);
        for (session, _open, _) in &sessions {
            kept += 1;
            let by = self.clock.now() + UNLISTENS_WITHIN;
            let Some(Ok(rows)) = self.clock.by(by, session.simple_query(&unlisten)).await else {
                break;
            };
            is_found = self::process(&rows).as_deref() == process;
            if is_found {
                break;
            }
        }
        for (session, _open, _) in sessions.iter().take(kept) {
            let _ = self.in_time(session.batch_execute("COMMIT")).await;
        }
        is_found
    }

    /// Over another session.
    async fn notify_itself(&self) -> Result<(), String> {
        let pool = self.pool.upgrade().ok_or("the client is closed")?;
        let by = self.clock.now() + self.route.limit;
        let connection = pool.get(by).await.map_err(|error| error.to_string())?;
        let client = self.client.0.to_be_bytes().to_vec();
        let params = vec![
            Param::bytes(client),
            Param::ManyTexts(vec![PROOF.to_owned()]),
        ];
        let tell = Statement::new("SELECT lock_store.tell($1, ($2)[1])", params);
        let told = self.in_time(connection.run(&tell, self.clock.now(), self.route.limit));
        told.await.map(drop)
    }
}

/// After a subscription that heard nothing, as this number of them before it: each try takes a
/// pooler's sessions from those who lock.
fn pause_after(silences: u32) -> Duration {
    let pause = TRIES_AGAIN.saturating_mul(1 << silences.min(16));
    pause.min(TRIES_AT_LAST)
}

/// A standby takes no `LISTEN`, and nobody tells anything at a primary that was replaced.
async fn greet(
    mut session: PgSession,
    known: &KnownIdentity,
) -> Result<(PgSession, Option<ServerIdentity>), StoreError> {
    let PgSession {
        client,
        messages,
        server,
        ..
    } = &mut session;
    let is_gone = async { while messages.next().await.is_some() {} };
    let greeted = async {
        Greeting::of(client, server).await?;
        Ok(ServerIdentity::of(client).await)
    };
    let identity = tokio::select! {
        identity = greeted => identity?,
        () = is_gone => {
            let text = format!("{server}: the connection ended");
            return Err(StoreError::new(StoreErrorKind::Disconnected, text));
        }
    };
    if let Some(identity) = identity {
        known.check_listening(identity, server)?;
    }
    Ok((session, identity))
}

/// The number of the session's process.
fn process(rows: &[SimpleQueryMessage]) -> Option<String> {
    rows.iter().find_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

fn text_of(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_is_heard_it_is_tried_less_and_less_often() {
        let minutes = [0, 1, 2, 3, 4, 5, 100].map(|before| pause_after(before).as_secs() / 60);
        assert_eq!(minutes, [1, 2, 4, 8, 16, 16, 16]);
    }
}
