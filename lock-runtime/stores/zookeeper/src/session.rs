//! The client's session, over one connection after the other.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::backoff;
use lock_store::{Clock, Instant, Link, Listener, Mutex, StoreError};
use tokio::sync::{mpsc, watch};

use crate::base::KnownBases;
use crate::connection::{Connection, Live};
use crate::dial::{DialedSession, Dialer, Wanted};
use crate::errors::{gone, is_not_serving};
use crate::holds::Holds;
use crate::trust::SessionTrust;
use crate::wire;

/// What a session tells its store.
#[derive(Debug)]
pub(crate) enum News {
    /// A node that was watched has changed, or is gone.
    Changed(String),
    /// A connection is up. What was watched over the one before is not any more.
    Up,
    /// The session with this number is over, and all its children with it.
    Over(i64, Link),
    /// The client is closed.
    Closed,
}

/// Whether there is a connection.
#[derive(Clone, Debug)]
enum SessionState {
    /// After this many attempts that failed, the last with this error.
    Down(u64, Option<StoreError>),
    Up(Arc<Live>),
    Closed,
}

/// The client's session.
pub(crate) struct Session {
    dialer: Dialer,
    clock: Clock,
    listener: Weak<dyn Listener>,
    news: mpsc::UnboundedSender<News>,
    state: watch::Sender<SessionState>,
    /// The last transaction that this client has seen.
    seen: AtomicI64,
    reconnects: AtomicU64,
    links: AtomicU64,
    pub(crate) bases: KnownBases,
    /// How often the servers had forgotten what this client has seen.
    restored: AtomicU64,
    /// Whether there was ever a connection.
    was_up: AtomicBool,
    /// What hangs on the session.
    holds: Arc<Mutex<Holds>>,
    /// The URL's servers.
    pub(crate) server: String,
}

/// A server that refuses for a reason that does not pass is asked less often.
const LATER: Duration = Duration::from_secs(2);

impl Session {
    pub(crate) fn new(
        dialer: Dialer,
        listener: Weak<dyn Listener>,
        news: mpsc::UnboundedSender<News>,
        holds: Arc<Mutex<Holds>>,
    ) -> Self {
        Self {
            clock: dialer.clock.clone(),
            server: dialer.settings.server.clone(),
            dialer,
            listener,
            news,
            state: watch::Sender::new(SessionState::Down(0, None)),
            seen: AtomicI64::new(0),
            reconnects: AtomicU64::new(0),
            links: AtomicU64::new(1),
            bases: KnownBases::default(),
            restored: AtomicU64::new(0),
            was_up: AtomicBool::new(false),
            holds,
        }
    }

    /// The link of the session that there is, or will be.
    pub(crate) fn link(&self) -> Link {
        Link(self.links.load(Ordering::Acquire))
    }

    pub(crate) fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    /// The connection, if there is one now.
    pub(crate) fn live_now(&self) -> Option<Arc<Live>> {
        match &*self.state.borrow() {
            SessionState::Up(live) => Some(Arc::clone(live)),
            SessionState::Down(..) | SessionState::Closed => None,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(&*self.state.borrow(), SessionState::Closed)
    }

    /// The connection. If there is none, waits for the end of the next attempt to connect; and on,
    /// if there was one before: an election takes several attempts.
    pub(crate) async fn live(&self, by: Instant) -> Result<Arc<Live>, StoreError> {
        let mut states = self.state.subscribe();
        let before = match &*states.borrow_and_update() {
            SessionState::Up(live) => return Ok(Arc::clone(live)),
            SessionState::Down(_, Some(error)) if !error.kind().is_transient() => {
                return Err(error.clone());
            }
            SessionState::Down(failures, _) => *failures,
            SessionState::Closed => return Err(gone(&self.server, "the client is closed")),
        };
        let was_up = self.was_up.load(Ordering::Relaxed);
        let ended = states.wait_for(|state| match state {
            SessionState::Up(_) | SessionState::Closed => true,
            SessionState::Down(_, Some(error)) if !error.kind().is_transient() => true,
            SessionState::Down(failures, _) => *failures > before && !was_up,
        });
        let state = match self.clock.by(by, ended).await {
            Some(Ok(state)) => state.clone(),
            Some(Err(_)) => SessionState::Closed,
            None => self.state.borrow().clone(),
        };
        match state {
            SessionState::Up(live) => Ok(live),
            SessionState::Down(_, Some(error)) => Err(error),
            SessionState::Down(_, None) => Err(crate::errors::silent(&self.server)),
            SessionState::Closed => Err(gone(&self.server, "the client is closed")),
        }
    }

    /// Ends the session. Nobody waits for it.
    pub(crate) fn close(&self) {
        let before = self.state.send_replace(SessionState::Closed);
        let _ = self.news.send(News::Closed);
        if let SessionState::Up(live) = before {
            drop(live.send(wire::close()));
        }
    }

    /// Connects, again and again, until it is closed.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut wanted = Wanted::new(0);
        let mut failures = 0;
        // When the session is over at the latest, if it is not taken over.
        let mut ends = self.clock.now();
        // Until when it is trusted, if there is one.
        let mut trusted_until = None;
        while !self.is_closed() {
            let mut states = self.state.subscribe();
            let closed = states.wait_for(|state| matches!(state, SessionState::Closed));
            let dialed = tokio::select! {
                dialed = self.dialer.dial(&wanted) => dialed,
                _ = closed => return,
            };
            let dialed = match dialed {
                Ok(dialed) => dialed,
                Err(error) => {
                    failures += 1;
                    if wanted.seen > 0 && self.clock.now() > ends && is_not_serving(&error) {
                        self.forget_seen(&mut wanted);
                        trusted_until = None;
                    }
                    self.fail(failures, error, &mut states).await;
                    continue;
                }
            };
            if dialed.connected.session == 0 {
                if wanted.session != 0 {
                    self.end_session(&mut wanted);
                    trusted_until = None;
                    continue;
                }
                failures += 1;
                let error = gone(&dialed.server, "it gives no session");
                self.fail(failures, error, &mut states).await;
                continue;
            }
            if self.was_up.swap(true, Ordering::Relaxed) {
                self.reconnects.fetch_add(1, Ordering::Relaxed);
            }
            failures = 0;
            wanted.session = dialed.connected.session;
            wanted.secret.clone_from(&dialed.connected.secret);
            let live = self.carry(dialed, trusted_until).await;
            ends = self.clock.now() + live.timeout;
            trusted_until = Some(live.trusted_until());
            wanted.seen = self.seen.load(Ordering::Relaxed);
        }
    }

    /// The session that was asked for is over: the next attempt asks for a new one.
    fn end_session(&self, wanted: &mut Wanted) {
        let link = Link(self.links.fetch_add(1, Ordering::AcqRel));
        let _ = self.news.send(News::Over(wanted.session, link));
        tracing::warn!(
            server = %self.server,
            "the client's session with ZooKeeper has ended: what it held is lost"
        );
        *wanted = Wanted::new(wanted.seen);
    }

    /// Servers refuse who has seen more than they have, as after a restore from a snapshot. They do
    /// that without a word, as they do without a majority. So this goes on as somebody who has seen
    /// nothing, when the session is over in any case.
    fn forget_seen(&self, wanted: &mut Wanted) {
        if wanted.session != 0 {
            self.end_session(wanted);
        }
        wanted.seen = 0;
        self.seen.store(0, Ordering::Relaxed);
        self.restored.fetch_add(1, Ordering::Release);
    }

    /// How often the servers may have forgotten what this client has seen.
    pub(crate) fn restored(&self) -> u64 {
        self.restored.load(Ordering::Acquire)
    }

    async fn fail(
        &self,
        failures: u32,
        error: StoreError,
        states: &mut watch::Receiver<SessionState>,
    ) {
        let pause = match error.kind().is_transient() {
            true => backoff(failures),
            false => LATER,
        };
        self.step_down(&error);
        let until = self.clock.now() + pause;
        let closed = states.wait_for(|state| matches!(state, SessionState::Closed));
        let _ = self.clock.by(until, closed).await.is_some();
    }

    fn step_down(&self, error: &StoreError) {
        self.state.send_if_modified(|state| {
            let failures = match state {
                SessionState::Closed => return false,
                SessionState::Down(failures, _) => *failures,
                SessionState::Up(_) => 0,
            };
            *state = SessionState::Down(failures + 1, Some(error.clone()));
            true
        });
    }

    /// Until this connection ends.
    async fn carry(&self, dialed: DialedSession, trusted_until: Option<Instant>) -> Arc<Live> {
        let DialedSession {
            read,
            write,
            connected,
            sent,
            server,
        } = dialed;
        let millis = u64::try_from(connected.timeout_millis).unwrap_or(0);
        let timeout = Duration::from_millis(millis);
        let (tick, now) = (self.dialer.settings.tick, self.clock.now());
        let trust = match trusted_until {
            None => SessionTrust::begin(sent, timeout, tick),
            Some(until) => SessionTrust::take_over(until, sent, now, timeout, tick),
        };
        let (sender, mut calls) = mpsc::unbounded_channel();
        let live = Arc::new(Live {
            calls: sender,
            session: connected.session,
            link: self.link(),
            server: server.clone(),
            since: now,
            timeout,
            trust: Mutex::new(trust),
        });
        let is_open = self.state.send_if_modified(|state| {
            let is_open = !matches!(state, SessionState::Closed);
            if is_open {
                *state = SessionState::Up(Arc::clone(&live));
            }
            is_open
        });
        if !is_open {
            drop(live.send(wire::close()));
        }
        let _ = self.news.send(News::Up);
        if let Some(listener) = self.listener.upgrade() {
            listener.connected(&server);
        }
        self.bases.forget_all();
        let on_event = |path: String| {
            // At once: the next reply may be newer.
            self.bases.forget(&path);
            let _ = self.news.send(News::Changed(path));
        };
        let on_zxid = |zxid| {
            self.seen.fetch_max(zxid, Ordering::Relaxed);
        };
        let needs_trust = || self.holds.lock().has_own();
        let connection = Connection::new(&live, &self.clock, &on_event, &on_zxid, &needs_trust);
        let error = connection.carry(read, write, &mut calls).await;
        // Before anybody hears of it: who asks again waits for the next connection.
        self.state.send_if_modified(|state| {
            let is_open = !matches!(state, SessionState::Closed);
            if is_open {
                *state = SessionState::Down(0, None);
            }
            is_open
        });
        connection.fail(&error);
        if let Some(listener) = self.listener.upgrade()
            && !self.is_closed()
        {
            listener.disconnected(&server, &error);
        }
        live
    }
}
