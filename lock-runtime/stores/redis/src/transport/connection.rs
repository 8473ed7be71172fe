//! [`Connection`]: one connection at a time, which is replaced when it is gone, no longer answers,
//! or leads to a replica.
//!
//! The redis crate's own reconnecting connection is not used: its time limit does not cover the
//! wait for a reconnect (a command to a dead server blocked for 9 s), and it keeps a peer that
//! stopped answering for ever.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use lock_store::timing::{BACKOFF_MAX, is_cut};
use lock_store::{
    Failure, Instant, Link, Listener, Mutex, ServerHealth, StoreError, StoreErrorKind,
};
use redis::{RedisError, Value};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;

use super::client_channels::ClientChannels;
use super::connected::Connected;
use super::script_or_command::Request;
use crate::context::ClientContext;
use crate::errors;
use crate::resp::{self, Limits};
use crate::topology::progress::Progress;
use crate::topology::unreached;

/// After this many commands in a row without an answer, the connection is replaced.
const SILENT_COMMANDS: u32 = 2;

#[derive(Clone, Debug)]
enum ConnectionState {
    /// No connection; why, if an attempt failed.
    Down(Option<StoreError>),
    Up(Arc<Connected>),
    Closed,
}

/// Shared by the store and the task that keeps it connected.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) context: ClientContext,
    /// What errors call the server before there is a connection.
    server: String,
    progress: Arc<Progress>,
    state: watch::Sender<ConnectionState>,
    /// Counts links, over all connections of a store.
    links: Arc<AtomicU64>,
    /// Its link while there is no connection. Each server has another: what waits for one of them
    /// is told from what waits for another.
    unconnected: Link,
    /// How many connections were made.
    made: AtomicU64,
    /// Commands in a row that got no answer.
    silent: AtomicU32,
    reports: mpsc::UnboundedSender<Report>,
    supervisor: OnceLock<AbortHandle>,
    /// Tells that somebody waits for a connection.
    pub(super) wanted: Arc<Notify>,
    /// Tells that the user lacked a right. It may have lost it.
    pub(super) denied: Arc<Notify>,
    /// When a request last gave up waiting for one.
    given_up_at: Mutex<Option<Instant>>,
}

/// What the task is told that keeps it connected.
pub(super) enum Report {
    /// The connection of this link is of no use any more.
    Broken(Link, StoreError),
    /// An answer is late over this link.
    Late(Link),
}

/// What came back for one request.
pub(crate) struct Exchanged {
    pub(crate) link: Link,
    /// From a server of a quorum: from when on its answers count there.
    pub(crate) counts_from: Option<Instant>,
    pub(crate) result: Result<Value, RedisError>,
}

impl Connection {
    /// One that nothing connects yet.
    pub(super) fn new(
        context: ClientContext,
        server: String,
        links: Arc<AtomicU64>,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Self {
        Self {
            context,
            server,
            unconnected: next(&links),
            progress: Arc::default(),
            state: watch::Sender::new(ConnectionState::Down(None)),
            links,
            made: AtomicU64::new(0),
            silent: AtomicU32::new(0),
            reports,
            supervisor: OnceLock::new(),
            wanted: Arc::default(),
            denied: Arc::default(),
            given_up_at: Mutex::default(),
        }
    }

    /// This task keeps it connected, and ends with it.
    pub(super) fn set_supervisor(&self, supervisor: AbortHandle) {
        let _ = self.supervisor.set(supervisor);
    }

    /// The link of its connection, or one of its own that nothing uses while there is none. It is
    /// read together with the connection: whoever notes a link sends over that one or a later one,
    /// and an undo over it is believed neither too soon nor never.
    pub(crate) fn link(&self) -> Link {
        self.with_up(|up| up.link).unwrap_or(self.unconnected)
    }

    pub(super) fn next_link(&self) -> Link {
        next(&self.links)
    }

    fn with_up<T>(&self, read: impl FnOnce(&Arc<Connected>) -> T) -> Option<T> {
        match &*self.state.borrow() {
            ConnectionState::Up(up) => Some(read(up)),
            ConnectionState::Down(_) | ConnectionState::Closed => None,
        }
    }

    /// Listens on another channel of the client's own, if it is up. The next connection does so
    /// anyway.
    pub(crate) fn subscribe(&self, channel: &str) {
        self.subscribe_to(|_| vec![channel.to_owned()]);
    }

    /// Listens on all channels of the client's own. Called when it is up: whoever begins to use a
    /// view calls [`subscribe`](Self::subscribe), before or after that.
    pub(super) fn subscribe_all(&self) {
        self.subscribe_to(ClientChannels::all);
    }

    fn subscribe_to(&self, these: impl FnOnce(&ClientChannels) -> Vec<String>) {
        if let Some(own) = &self.context.channels {
            self.with_up(|up| {
                let (channels, own) = (these(own), Arc::clone(own));
                up.subscriptions
                    .subscribe_own(&up.connection, channels, own);
            });
        }
    }

    /// Listens on these channels of the client's own no longer.
    pub(crate) fn unsubscribe(&self, channels: &[String]) {
        let Some(own) = &self.context.channels else {
            return;
        };
        self.with_up(|up| {
            let (channels, own) = (channels.to_vec(), Arc::clone(own));
            up.subscriptions.unsubscribe(&up.connection, channels, own);
        });
    }

    /// Whether there is a connection now.
    pub(crate) fn is_up(&self) -> bool {
        matches!(*self.state.borrow(), ConnectionState::Up(_))
    }

    /// Why the last attempt to connect failed, if there is no connection.
    pub(crate) fn error(&self) -> Option<StoreError> {
        match &*self.state.borrow() {
            ConnectionState::Down(error) => error.clone(),
            ConnectionState::Up(_) | ConnectionState::Closed => None,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.state.borrow(), ConnectionState::Closed)
    }

    pub(crate) fn close(&self) {
        let mut before = ConnectionState::Closed;
        self.state
            .send_modify(|state| std::mem::swap(state, &mut before));
        if let Some(supervisor) = self.supervisor.get() {
            supervisor.abort();
        }
        if let ConnectionState::Up(up) = before {
            let text = "the connection is not needed any more";
            let error = StoreError::new(StoreErrorKind::Disconnected, text);
            self.context.listener.on_disconnected(&up.address(), &error);
        }
    }

    /// The connection, as soon as there is one. An error that does not pass by waiting is told at
    /// once.
    pub(crate) async fn get(&self, by: Instant) -> Result<Arc<Connected>, Failure> {
        if let ConnectionState::Up(up) = &*self.state.borrow() {
            return Ok(Arc::clone(up));
        }
        let mut states = self.state.subscribe();
        self.wanted.notify_one();
        let settled = states.wait_for(|state| match state {
            ConnectionState::Down(Some(error)) => !error.kind().is_transient(),
            ConnectionState::Down(None) => false,
            ConnectionState::Up(_) | ConnectionState::Closed => true,
        });
        let state = match self.context.clock.by(by, settled).await {
            Some(Ok(state)) => state.clone(),
            Some(Err(_)) => ConnectionState::Closed,
            None => self.state.borrow().clone(),
        };
        let error = match state {
            ConnectionState::Up(up) => return Ok(up),
            ConnectionState::Down(Some(error)) => error,
            ConnectionState::Down(None) => self.slow(),
            ConnectionState::Closed => errors::shut_down(),
        };
        *self.given_up_at.lock() = Some(self.context.clock.now());
        Err(Failure::without_effect(error))
    }

    /// True if somebody waits for a connection, or gave up so lately that it will ask again: its
    /// pause ends when there is one.
    pub(super) fn is_wanted(&self) -> bool {
        let pauses = |at| self.context.clock.now() <= at + BACKOFF_MAX;
        self.state.receiver_count() > 0 || self.given_up_at.lock().is_some_and(pauses)
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// No attempt to connect has ended yet.
    pub(crate) fn slow(&self) -> StoreError {
        unreached::slow(&self.context.access, &self.progress).of(&self.server)
    }

    /// Waits until the first attempt to connect has succeeded or failed, a little longer than `by`:
    /// the attempt has a time limit of its own, which began later, and knows best what failed.
    pub(crate) async fn await_first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        let by = by + self.context.timeouts.connect;
        let mut states = self.state.subscribe();
        let tried = states.wait_for(|state| !matches!(state, ConnectionState::Down(None)));
        match self.context.clock.by(by, tried).await {
            Some(Ok(state)) => match &*state {
                ConnectionState::Down(Some(error)) => Err(error.clone()),
                _ => Ok(()),
            },
            _ => Err(self.slow()),
        }
    }

    /// Sends one request, and notes what the answer says about the connection.
    pub(crate) async fn exchange(
        &self,
        by: Instant,
        request: &Request,
        asking: bool,
    ) -> Result<Exchanged, Failure> {
        let up = self.choose(by).await?;
        let sent = self.context.clock.now();
        let limits = Limits {
            by,
            late: match request.blocks() {
                true => by,
                false => sent + resp::late(self.context.timeouts.command),
            },
            patience: request.patience().unwrap_or(by),
            is_repeated: request.is_repeated(),
        };
        let result = request.run(&up, asking, &limits).await;
        let result = self.note_answer(&up, sent, by, Some(result))?;
        Ok(Exchanged {
            link: up.link,
            counts_from: up.counts_from,
            result,
        })
    }

    /// The same for what is more than one request.
    pub(crate) async fn exchange_with<T>(
        &self,
        by: Instant,
        exchange: impl AsyncFnOnce(&Connected) -> Result<T, RedisError>,
    ) -> Result<Result<T, RedisError>, Failure> {
        let up = self.choose(by).await?;
        let sent = self.context.clock.now();
        let answer = self.context.clock.by(by, exchange(&up)).await;
        self.note_answer(&up, sent, by, answer)
    }

    async fn choose(&self, by: Instant) -> Result<Arc<Connected>, Failure> {
        match self.with_up(Arc::clone) {
            Some(up) => Ok(up),
            None => Box::pin(self.get(by)).await,
        }
    }

    /// Counts what an answer, or its absence, says about the connection, and reports one that is of
    /// no use.
    fn note_answer<T>(
        &self,
        up: &Connected,
        sent: Instant,
        by: Instant,
        answer: Option<Result<T, RedisError>>,
    ) -> Result<Result<T, RedisError>, Failure> {
        let link = up.link;
        let Some(result) = answer.filter(|answer| !is_timeout(answer)) else {
            self.not_answered(link, sent, by);
            let error = StoreError::new(StoreErrorKind::Timeout, "the command was not answered");
            return Err(Failure::unknown(error.of(&up.address()), link));
        };
        self.silent.store(0, Ordering::Release);
        let Err(error) = &result else {
            return Ok(result);
        };
        match errors::kind(error) {
            StoreErrorKind::Denied => self.denied.notify_one(),
            StoreErrorKind::Disconnected => {
                let error = errors::store_error(error).of(&up.address());
                self.report(link, error.clone());
                return Err(Failure::unknown(error, link));
            }
            // Behind a name that moved to a new master, a new connection finds it.
            _ if errors::is_replica(error) => self.report(link, errors::store_error(error)),
            _ => {}
        }
        Ok(result)
    }

    fn not_answered(&self, link: Link, sent: Instant, by: Instant) {
        let limit = self.context.timeouts.command;
        // A command whose time was cut by its request's budget says nothing about the connection.
        if !is_cut(sent, by, limit)
            && self.link() == link
            && self.silent.fetch_add(1, Ordering::AcqRel) + 1 >= SILENT_COMMANDS
        {
            let text = "commands in a row were not answered";
            self.report(link, StoreError::new(StoreErrorKind::Timeout, text));
        }
    }

    /// Asks the server about itself. The connection is not judged by the answer.
    pub(crate) async fn ask_health(
        &self,
        by: Instant,
        ask: impl AsyncFnOnce(&Connected) -> Result<ServerHealth, RedisError>,
    ) -> Result<ServerHealth, StoreError> {
        let clock = &self.context.clock;
        let up = self.get(by).await.map_err(|failure| failure.error)?;
        let Some(result) = clock.by(by, ask(&up)).await else {
            return Err(errors::no_self_description().of(&up.address()));
        };
        let mut health = result.map_err(|error| errors::store_error(&error).of(&up.address()))?;
        health.connected_for = clock.now().saturating_duration_since(up.since);
        health.reconnects = self.made.load(Ordering::Acquire).saturating_sub(1);
        Ok(health)
    }

    /// Says that the connection of this link is of no use any more.
    pub(super) fn report(&self, link: Link, error: StoreError) {
        let _ = self.reports.send(Report::Broken(link, error));
    }

    /// Says that an answer is late over this link.
    pub(super) fn doubt(&self, link: Link) {
        let _ = self.reports.send(Report::Late(link));
    }

    /// Puts a new connection in use, also instead of one that is up.
    pub(super) fn bring_up(&self, up: Connected) {
        self.silent.store(0, Ordering::Release);
        self.made.fetch_add(1, Ordering::AcqRel);
        let before = self.with_up(Arc::clone);
        self.change(ConnectionState::Up(Arc::new(up)));
        if let Some(before) = before {
            before.connection.replace();
        }
    }

    /// An attempt to connect has failed.
    pub(super) fn stay_down(&self, error: StoreError) {
        self.change(ConnectionState::Down(Some(error)));
    }

    /// A closed connection stays closed.
    fn change(&self, to: ConnectionState) {
        self.state.send_if_modified(|state| match state {
            ConnectionState::Closed => false,
            _ => {
                *state = to;
                true
            }
        });
    }

    /// Takes the connection of this link out of use.
    pub(super) fn take_down(&self, link: Link, error: StoreError) {
        self.state.send_if_modified(|state| {
            let is_current = matches!(state, ConnectionState::Up(up) if up.link == link);
            if is_current {
                *state = ConnectionState::Down(Some(error));
            }
            is_current
        });
    }
}

fn is_timeout<T>(answer: &Result<T, RedisError>) -> bool {
    answer.as_ref().is_err_and(RedisError::is_timeout)
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

fn next(links: &AtomicU64) -> Link {
    Link(links.fetch_add(1, Ordering::AcqRel) + 1)
}
