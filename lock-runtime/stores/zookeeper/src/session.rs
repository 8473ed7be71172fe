//! The client's session, over one connection after the other.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lock_store::ordered::{Connecting, SessionNews, gone};
use lock_store::{Listener, Mutex, StoreError};
use tokio::sync::mpsc;

use crate::base::KnownBases;
use crate::connection::{Connection, Live};
use crate::dial::{DialedSession, Dialer, Wanted};
use crate::errors::is_not_serving;
use crate::own_children::OwnChildren;
use crate::trust::{SessionTrust, SharedTrust};
use crate::wire;

pub(crate) struct Session {
    pub(crate) connecting: Connecting<Live>,
    pub(crate) dialer: Dialer,
    listener: Weak<dyn Listener>,
    news: mpsc::UnboundedSender<SessionNews>,
    /// The last transaction that this client has seen.
    seen: AtomicI64,
    pub(crate) bases: KnownBases,
    /// How often the servers had forgotten what this client has seen.
    restored: AtomicU64,
    /// What hangs on the session.
    own: Arc<Mutex<OwnChildren>>,
}

impl Session {
    pub(crate) fn new(
        dialer: Dialer,
        listener: Weak<dyn Listener>,
        news: mpsc::UnboundedSender<SessionNews>,
        own: Arc<Mutex<OwnChildren>>,
    ) -> Self {
        Self {
            connecting: Connecting::new(dialer.clock.clone(), dialer.settings.server.clone(), true),
            dialer,
            listener,
            news,
            seen: AtomicI64::new(0),
            bases: KnownBases::default(),
            restored: AtomicU64::new(0),
            own,
        }
    }

    /// Ends the session. Nobody waits for it.
    pub(crate) fn close(&self) {
        let last = self.connecting.close();
        let _ = self.news.send(SessionNews::Closed);
        if let Some(live) = last {
            drop(live.send(wire::close()));
        }
    }

    /// Connects, again and again, until it is closed.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut wanted = Wanted::new(0);
        // In a row: attempts, and connections that ended at once.
        let (mut failures, mut quick) = (0, 0);
        // When the session is over at the latest, if it is not taken over, whatever a new leader
        // goes back to.
        let clock = self.connecting.clock();
        let mut ends = clock.now();
        while let Some(dialed) = self
            .connecting
            .until_closed(self.dialer.dial(&wanted))
            .await
        {
            let dialed = match dialed {
                Ok(dialed) => dialed,
                Err(error) => {
                    failures += 1;
                    if wanted.seen > 0 && clock.now() > ends && is_not_serving(&error) {
                        self.forget_seen(&mut wanted);
                    }
                    self.connecting.fail(failures, error).await;
                    continue;
                }
            };
            if dialed.connected.session == 0 {
                if wanted.session != 0 {
                    self.end_session(&mut wanted);
                    continue;
                }
                failures += 1;
                let error = gone(&dialed.server, "it gives no session");
                self.connecting.fail(failures, error).await;
                continue;
            }
            wanted.session = dialed.connected.session;
            wanted.secret.clone_from(&dialed.connected.secret);
            let (live, error) = self.run_until_lost(dialed, wanted.trust.take()).await;
            failures = 0;
            // The next one may end as soon.
            quick = match live.was_of_use(clock.now()) {
                true => 0,
                false => quick + 1,
            };
            ends = clock.now() + live.trust.lock().longest_timeout();
            wanted.trust = Some(Arc::clone(&live.trust));
            wanted.seen = self.seen.load(Ordering::Relaxed);
            // A server that is too old stays so. The others have to be as new, so all wait.
            if quick > 0 || !error.kind().is_transient() {
                self.connecting.fail(quick.max(1), error).await;
            }
        }
    }

    /// The session that was asked for is over: the next attempt asks for a new one.
    fn end_session(&self, wanted: &mut Wanted) {
        let link = self.connecting.end_link();
        let _ = self.news.send(SessionNews::Over(wanted.session, link));
        tracing::warn!(
            server = self.connecting.server(),
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

    /// Runs this connection until it ends.
    async fn run_until_lost(
        &self,
        dialed: DialedSession,
        trust: Option<SharedTrust>,
    ) -> (Arc<Live>, StoreError) {
        let (sent, server) = (dialed.sent, dialed.server);
        let timeout = dialed.connected.timeout;
        let clock = self.connecting.clock();
        let (tick, now) = (self.dialer.settings.tick, clock.now());
        let trust = match trust {
            None => Arc::new(Mutex::new(SessionTrust::begin(sent, timeout, tick))),
            Some(trust) => {
                trust.lock().take_over(sent, now);
                trust
            }
        };
        let (sender, mut calls) = mpsc::unbounded_channel();
        let live = Arc::new(Live {
            calls: sender,
            session: dialed.connected.session,
            link: self.connecting.link(),
            server: server.clone(),
            since: now,
            timeout,
            trust,
            has_written: AtomicBool::new(false),
        });
        if !self.connecting.come_up(&live) {
            drop(live.send(wire::close()));
        }
        let _ = self.news.send(SessionNews::Up);
        self.listener.on_connected(&server);
        self.bases.forget_all();
        let on_event = |path: String| {
            // At once: the next reply may be newer.
            self.bases.forget(&path);
            let _ = self.news.send(SessionNews::Changed(path));
        };
        let on_zxid = |zxid| {
            self.seen.fetch_max(zxid, Ordering::Relaxed);
        };
        let needs_trust = || !self.own.lock().is_empty();
        let connection = Connection::new(&live, clock, &on_event, &on_zxid, &needs_trust);
        let error = connection
            .run_until_lost(dialed.read, dialed.write, &mut calls)
            .await;
        // Before anybody hears of it: who asks again waits for the next connection.
        self.connecting.go_down(&error);
        connection.fail(&error);
        if !self.connecting.is_closed() {
            self.listener.on_disconnected(&server, &error);
        }
        (live, error)
    }
}
