//! The client's session, over one connection after the other.
//!
//! It is a key under a short lease, which each connection writes anew: what an earlier one has
//! sent, and is carried out late, finds another revision there and does nothing.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::ordered::{Connecting, SessionNews, gone, silent};
use lock_store::timing::backoff;
use lock_store::{Listener, Mutex, StoreError};
use tokio::sync::mpsc;

use crate::connection::{Begin, Epoch, Live};
use crate::dial::{DialedMember, Dialer};
use crate::errors::error_of;
use crate::grpc::{CallError, Channel};
use crate::keep_alive::{keep_alive, pause_of};
use crate::leases::{ClientLeases, LeaseUse};
use crate::watches::watch;
use crate::wire::{HeaderReply, LeaseGrant, LeaseReply, PutRequest, path};

/// So many connections that end at once make the pause before the next one longer. The first of
/// them are replaced at once.
const QUICK: u32 = 4;

pub(crate) struct Session {
    pub(crate) connecting: Connecting<Live>,
    dialer: Dialer,
    listener: Weak<dyn Listener>,
    news: mpsc::UnboundedSender<SessionNews>,
    pub(crate) leases: ClientLeases,
    /// The session's key.
    key: String,
    /// The session's lease, and the time that it was granted for.
    lease: Mutex<Option<(i64, Duration)>>,
    /// The highest revision of the answers so far.
    seen: Arc<AtomicI64>,
    /// The highest revision that was there before a cluster was restored that is behind it.
    lost: AtomicI64,
}

impl Session {
    pub(crate) fn new(
        dialer: Dialer,
        key: String,
        listener: Weak<dyn Listener>,
        news: mpsc::UnboundedSender<SessionNews>,
    ) -> Self {
        Self {
            connecting: Connecting::new(
                dialer.clock.clone(),
                dialer.settings.server.clone(),
                false,
            ),
            dialer,
            listener,
            news,
            leases: ClientLeases::default(),
            key,
            lease: Mutex::new(None),
            seen: Arc::default(),
            lost: AtomicI64::new(0),
        }
    }

    /// The highest revision that a restored cluster has lost. Zero: none was.
    pub(crate) fn lost(&self) -> i64 {
        self.lost.load(Ordering::Acquire)
    }

    /// There are no more connections after the present one.
    pub(crate) fn close(&self) {
        self.connecting.close();
        let _ = self.news.send(SessionNews::Closed);
    }

    /// Connects, again and again, until it is closed.
    pub(crate) async fn run(self: Arc<Self>) {
        let clock = self.connecting.clock();
        // In a row: attempts, and connections that ended at once.
        let (mut failures, mut quick) = (0, 0);
        while let Some(dialed) = self.connecting.until_closed(self.dialer.dial()).await {
            let begun = match dialed {
                Ok(dialed) => self.begin(dialed).await,
                Err(error) => Err(error),
            };
            let live = match begun {
                Ok(live) => live,
                Err(error) => {
                    failures += 1;
                    self.connecting.fail(failures, error).await;
                    continue;
                }
            };
            let began = clock.now();
            self.run_until_lost(live).await;
            // A proxy that cuts streams lets connections come up, and each of them writes.
            failures = 0;
            quick = match clock.now() - began < pause_of(self.dialer.settings.session) {
                true => quick + 1,
                false => 0,
            };
            if quick >= QUICK {
                let paused = clock.sleep_until(clock.now() + backoff(quick / QUICK));
                let _ = self.connecting.until_closed(paused).await;
            }
        }
    }

    /// Takes the session over to this connection, or begins a new one.
    async fn begin(&self, dialed: DialedMember) -> Result<BegunConnection, StoreError> {
        let DialedMember {
            channel,
            connection,
            server,
        } = dialed;
        let clock = self.connecting.clock();
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        clock.spawn(async move {
            let why = match connection.await {
                Ok(()) => "it closed the connection".to_owned(),
                Err(error) => error.to_string(),
            };
            let _ = ended.send(why);
        });
        let by = clock.now() + self.dialer.members.limit();
        let epoch = clock.by(by, self.enter(&channel, &server)).await;
        let epoch = epoch.unwrap_or_else(|| Err(silent(&server)))?;
        Ok(BegunConnection {
            begin: Begin {
                channel,
                identity: Arc::clone(&self.dialer.identity),
                clock: clock.clone(),
                epoch,
                link: self.connecting.link(),
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
            let sent = self.connecting.clock().now();
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
        let asked = self
            .leases
            .ask_for(LeaseUse::Session, self.connecting.clock().now());
        let grant = LeaseGrant {
            seconds: i64::try_from(self.dialer.settings.session.as_secs()).unwrap_or(i64::MAX),
            id: asked.id,
        };
        let token = self.dialer.identity.token();
        let reply = channel
            .unary::<LeaseReply>(path::GRANT, token, &grant)
            .await;
        let (sent, seconds) = match reply {
            Ok(reply) => (asked.sent, reply.seconds),
            Err(CallError::Status(status)) if status.is_lease_there() && asked.is_repeated => {
                (asked.first_sent, grant.seconds)
            }
            Err(error) => {
                if let CallError::Status(status) = &error {
                    self.leases.note_refusal(LeaseUse::Session, status);
                }
                return Err(error_of(error, server));
            }
        };
        let ttl = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let asked_for = self.dialer.settings.session;
        self.leases.add(asked.id, asked_for, (sent, ttl), None);
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
        let link = self.connecting.end_link();
        let _ = self.news.send(SessionNews::Over(lease, link));
        tracing::warn!(
            server = self.connecting.server(),
            "the client's session with etcd has ended: its places in queues are lost"
        );
    }

    /// Runs this connection until it ends.
    async fn run_until_lost(&self, BegunConnection { begin, has_ended }: BegunConnection) {
        let server = begin.server.clone();
        let (watches, mut wanted) = mpsc::unbounded_channel();
        let live = Arc::new(Live::new(begin, watches));
        if !self.connecting.come_up(&live) {
            return;
        }
        let _ = self.news.send(SessionNews::Up);
        self.listener.on_connected(&server);
        let session = self.granted().unwrap_or(self.dialer.settings.session);
        let mut broken = live.broken.subscribe();
        let beats = keep_alive(&live, &self.leases, self.connecting.clock(), session);
        let error = tokio::select! {
            Err(error) = beats => error,
            Err(error) = watch(&live, &mut wanted, &self.news) => error,
            why = has_ended => match why {
                Ok(why) => gone(&server, &why),
                Err(_) => gone(&server, "the connection's task has ended"),
            },
            error = broken.wait_for(Option::is_some) => match error {
                Ok(error) => error.clone().unwrap_or_else(|| silent(&server)),
                Err(_) => silent(&server),
            },
        };
        // Before anybody hears of it: who asks again waits for the next connection.
        self.connecting.go_down(&error);
        self.leases.forget_asked();
        live.end(error.clone());
        if !self.connecting.is_closed() {
            self.listener.on_disconnected(&server, &error);
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
