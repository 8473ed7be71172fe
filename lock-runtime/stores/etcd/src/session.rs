//! The client's session, over one connection after the other.
//!
//! It is a key under a short lease, which each connection writes anew: what an earlier one has
//! sent, and is carried out late, finds another revision there and does nothing.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::backoff;
use lock_store::{Clock, Instant, Link, Listener, Mutex, StoreError};
use tokio::sync::{mpsc, watch};

use crate::connection::{Begin, Epoch, Live};
use crate::dial::{DialedMember, Dialer, error_of};
use crate::errors::{gone, silent};
use crate::grpc::{CallError, Channel};
use crate::leases::{ClientLeases, LeaseUse};
use crate::news::News;
use crate::streams;
use crate::wire::{HeaderReply, LeaseGrant, LeaseReply, PutRequest, path};

/// Whether there is a connection.
#[derive(Clone)]
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
    pub(crate) leases: ClientLeases,
    /// The session's key.
    key: String,
    /// The session's lease, and the time that it was granted for.
    lease: Mutex<Option<(i64, Duration)>>,
    reconnects: AtomicU64,
    links: AtomicU64,
    /// The highest revision of the answers so far.
    seen: Arc<AtomicI64>,
    /// The highest revision that was there before a cluster was restored that is behind it.
    lost: AtomicI64,
    /// The URL's servers.
    pub(crate) server: String,
}

/// A server that refuses for a reason that does not pass is asked less often.
const LATER: Duration = Duration::from_secs(2);

impl Session {
    pub(crate) fn new(
        dialer: Dialer,
        key: String,
        listener: Weak<dyn Listener>,
        news: mpsc::UnboundedSender<News>,
    ) -> Self {
        Self {
            clock: dialer.clock.clone(),
            server: dialer.settings.server.clone(),
            dialer,
            listener,
            news,
            state: watch::Sender::new(SessionState::Down(0, None)),
            leases: ClientLeases::default(),
            key,
            lease: Mutex::new(None),
            reconnects: AtomicU64::new(0),
            links: AtomicU64::new(1),
            seen: Arc::default(),
            lost: AtomicI64::new(0),
        }
    }

    /// The link of the session that there is, or will be.
    pub(crate) fn link(&self) -> Link {
        Link(self.links.load(Ordering::Acquire))
    }

    /// The highest revision that a restored cluster has lost. Zero: none was.
    pub(crate) fn lost(&self) -> i64 {
        self.lost.load(Ordering::Acquire)
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

    /// The connection. Waits for the end of the next attempt to connect if there is none.
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
        let ended = states.wait_for(|state| match state {
            SessionState::Up(_) | SessionState::Closed => true,
            SessionState::Down(failures, _) => *failures > before,
        });
        let state = match self.clock.by(by, ended).await {
            Some(Ok(state)) => state.clone(),
            Some(Err(_)) => SessionState::Closed,
            None => self.state.borrow().clone(),
        };
        match state {
            SessionState::Up(live) => Ok(live),
            SessionState::Down(_, Some(error)) => Err(error),
            SessionState::Down(_, None) => Err(silent(&self.server)),
            SessionState::Closed => Err(gone(&self.server, "the client is closed")),
        }
    }

    /// There are no more connections after the present one.
    pub(crate) fn close(&self) {
        self.state.send_replace(SessionState::Closed);
        let _ = self.news.send(News::Closed);
    }

    /// Connects, again and again, until it is closed.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut failures = 0;
        let mut was_up = false;
        while !self.is_closed() {
            let mut states = self.state.subscribe();
            let closed = states.wait_for(|state| matches!(state, SessionState::Closed));
            let dialed = tokio::select! {
                dialed = self.dialer.dial() => dialed,
                _ = closed => return,
            };
            let begun = match dialed {
                Ok(dialed) => self.begin(dialed).await,
                Err(error) => Err(error),
            };
            let live = match begun {
                Ok(live) => live,
                Err(error) => {
                    failures += 1;
                    self.fail(failures, error, &mut states).await;
                    continue;
                }
            };
            if was_up {
                self.reconnects.fetch_add(1, Ordering::Relaxed);
            }
            (was_up, failures) = (true, 0);
            self.carry(live).await;
        }
    }

    /// Takes the session over to this connection, or begins a new one.
    async fn begin(&self, dialed: DialedMember) -> Result<BegunConnection, StoreError> {
        let DialedMember {
            channel,
            connection,
            server,
        } = dialed;
        let driven = self.clock.clone();
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        driven.spawn(async move {
            let why = match connection.await {
                Ok(()) => "it closed the connection".to_owned(),
                Err(error) => error.to_string(),
            };
            let _ = ended.send(why);
        });
        let by = self.clock.now() + self.dialer.timeouts.connect;
        let epoch = self.clock.by(by, self.enter(&channel, &server)).await;
        let epoch = epoch.unwrap_or_else(|| Err(silent(&server)))?;
        Ok(BegunConnection {
            begin: Begin {
                channel,
                identity: Arc::clone(&self.dialer.identity),
                clock: self.clock.clone(),
                epoch,
                link: self.link(),
                server,
                seen: Arc::clone(&self.seen),
            },
            has_ended,
        })
    }

    async fn enter(&self, channel: &Channel, server: &str) -> Result<Epoch, StoreError> {
        loop {
            let before = *self.lease.lock();
            let lease = match before {
                Some((lease, _)) => lease,
                None => self.grant(channel, server).await?,
            };
            let put = PutRequest {
                key: self.key.clone().into(),
                value: Vec::new(),
                lease,
            };
            let token = self.dialer.identity.token();
            let sent = self.clock.now();
            let reply = channel.unary::<HeaderReply>(path::PUT, token, &put).await;
            match reply {
                Ok(reply) => {
                    let header = reply.header.unwrap_or_default();
                    let seen = self.seen.fetch_max(header.revision, Ordering::AcqRel);
                    if header.revision < seen {
                        tracing::warn!(server, "etcd was restored from an older state");
                        self.lost.fetch_max(seen, Ordering::AcqRel);
                    }
                    self.leases.forget_asked();
                    if let Some(ttl) = self.granted() {
                        self.leases.keep(lease, sent, ttl);
                    }
                    self.leases.prove(lease, sent, header.raft_term);
                    return Ok(Epoch {
                        key: self.key.clone(),
                        revision: header.revision,
                        lease,
                    });
                }
                Err(CallError::Status(status)) if status.is_lease_gone() => {
                    self.end_session(lease);
                }
                Err(error) => return Err(error_of(error, server)),
            }
        }
    }

    async fn grant(&self, channel: &Channel, server: &str) -> Result<i64, StoreError> {
        let asked = self.leases.ask_for(LeaseUse::Session, self.clock.now());
        let grant = LeaseGrant {
            seconds: i64::try_from(self.dialer.settings.session.as_secs()).unwrap_or(i64::MAX),
            id: asked.id,
        };
        let token = self.dialer.identity.token();
        let reply = channel
            .unary::<LeaseReply>(path::GRANT, token, &grant)
            .await;
        let seconds = match reply {
            Ok(reply) => reply.seconds,
            Err(CallError::Status(status)) if status.is_lease_there() && asked.is_repeated => {
                grant.seconds
            }
            Err(error) => {
                if matches!(&error, CallError::Status(status) if !status.is_unclear()) {
                    self.leases.note_answer(LeaseUse::Session);
                }
                return Err(error_of(error, server));
            }
        };
        let ttl = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        self.leases.add(asked.id, asked.sent, ttl, None);
        self.leases.note_answer(LeaseUse::Session);
        *self.lease.lock() = Some((asked.id, ttl));
        Ok(asked.id)
    }

    /// How long the session lasts without its client, as the servers have granted it.
    pub(crate) fn granted(&self) -> Option<Duration> {
        self.lease.lock().map(|(_, ttl)| ttl)
    }

    /// The session is over: the next attempt begins a new one.
    fn end_session(&self, lease: i64) {
        *self.lease.lock() = None;
        self.leases.remove(lease);
        let link = Link(self.links.fetch_add(1, Ordering::AcqRel));
        let _ = self.news.send(News::Over(lease, link));
        tracing::warn!(
            server = %self.server,
            "the client's session with etcd has ended: its places in queues are lost"
        );
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
    async fn carry(&self, BegunConnection { begin, has_ended }: BegunConnection) {
        let server = begin.server.clone();
        let (watches, mut wanted) = mpsc::unbounded_channel();
        let live = Arc::new(Live::new(begin, watches));
        let is_open = self.state.send_if_modified(|state| {
            let is_open = !matches!(state, SessionState::Closed);
            if is_open {
                *state = SessionState::Up(Arc::clone(&live));
            }
            is_open
        });
        if !is_open {
            return;
        }
        let _ = self.news.send(News::Up);
        if let Some(listener) = self.listener.upgrade() {
            listener.connected(&server);
        }
        let session = self.granted().unwrap_or(self.dialer.settings.session);
        let mut broken = live.broken.subscribe();
        let error = tokio::select! {
            error = streams::keep_alive(&live, &self.leases, &self.clock, session) => error,
            error = streams::watch(&live, &mut wanted, &self.news) => error,
            why = has_ended => gone(&server, &why.unwrap_or_default()),
            error = broken.wait_for(Option::is_some) => match error {
                Ok(error) => error.clone().unwrap_or_else(|| silent(&server)),
                Err(_) => silent(&server),
            },
        };
        // Before anybody hears of it: who asks again waits for the next connection.
        self.state.send_if_modified(|state| {
            let is_open = !matches!(state, SessionState::Closed);
            if is_open {
                *state = SessionState::Down(0, None);
            }
            is_open
        });
        self.leases.forget_asked();
        live.end(error.clone());
        if let Some(listener) = self.listener.upgrade()
            && !self.is_closed()
        {
            listener.disconnected(&server, &error);
        }
    }
}

/// A connection that has the session.
struct BegunConnection {
    begin: Begin,
    has_ended: tokio::sync::oneshot::Receiver<String>,
}

/// The name of the session's key says whose it is.
pub(crate) fn key_of(helpers: &str, client: lock_store::ClientId) -> String {
    format!("{helpers}session/{:032x}", client.0)
}
