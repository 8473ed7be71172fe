//! [`Connection`]: one connection at a time, which is replaced when it is gone, no longer answers,
//! or leads to a replica.
//!
//! The redis crate's own reconnecting connection is not used: its time limit does not cover the
//! wait for a reconnect (a command to a dead server blocked for 9 s), and it keeps a peer that
//! stopped answering for ever.

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lock_store::timing::BACKOFF_MAX;
use lock_store::{Failure, Instant, Link, Mutex, ServerHealth, StoreError, StoreErrorKind};
use redis::{RedisError, Value};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;

use super::client_channels::ClientChannels;
use super::connected::Connected;
use super::doubt;
use super::request::Request;
use super::runtime_table::{Found, RuntimeTable};
use crate::context::ClientContext;
use crate::errors::{self, maybe_carried_out, without_effect};
use crate::topology::driver::is_crowded;
use crate::topology::progress::Progress;
use crate::topology::traffic::Mark;
use crate::topology::unreached;

/// So many commands in a row without an answer, and the connection is replaced.
const SILENT_COMMANDS: u32 = 2;
/// So many command timeouts in a row without anything to read, and a server is not slow but dead,
/// however busy this process is.
const SILENT_TIMES: u32 = 8;
/// A process that is woken later than this is slow itself.
const SLACK: Duration = Duration::from_millis(10);
/// A request that waits is polled so often, so that everybody sees that it is polled.
const TICK: Duration = Duration::from_millis(500);
/// How long a runtime is left without one after a command over it was not answered: it may not be
/// driven.
const REST_IF_SILENT: Duration = Duration::from_secs(30);

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
    /// The link of the connection that is up, as `state` says it. Zero is none.
    up: AtomicU64,
    pub(super) runtimes: RuntimeTable,
    /// Whether runtimes may have connections of their own.
    pub(super) allows_runtimes: bool,
    /// Counts links, over all connections of a store.
    links: Arc<AtomicU64>,
    /// The link of its newest connection.
    newest: AtomicU64,
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
    /// An answer is late over this link, which is `main` or one that a caller's runtime drives
    /// beside it.
    Late { over: Link, main: Link },
}

/// What came back for one request.
pub(crate) struct Answered {
    pub(crate) link: Link,
    /// From a server of a quorum: from when on its answers count there.
    pub(crate) counts_from: Option<Instant>,
    pub(crate) result: Result<Value, RedisError>,
}

/// Which connection a request goes over.
struct Chosen {
    up: Arc<Connected>,
    of: DrivenBy,
}

/// Which runtime drives a connection.
#[derive(Clone, Copy)]
enum DrivenBy {
    /// The one of the client's own thread.
    Client,
    /// The caller's, beside this link of the client's thread.
    Runtime { main: Link },
}

impl Chosen {
    fn main(up: Arc<Connected>) -> Self {
        let of = DrivenBy::Client;
        Self { up, of }
    }

    fn of_runtime(up: Arc<Connected>, main: Link) -> Self {
        let of = DrivenBy::Runtime { main };
        Self { up, of }
    }
}

impl Connection {
    /// One that nothing connects yet.
    pub(super) fn new(
        context: ClientContext,
        server: String,
        links: Arc<AtomicU64>,
        allows_runtimes: bool,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Self {
        Self {
            context,
            server,
            progress: Arc::default(),
            state: watch::Sender::new(ConnectionState::Down(None)),
            up: AtomicU64::new(0),
            runtimes: RuntimeTable::default(),
            allows_runtimes,
            links,
            newest: AtomicU64::new(0),
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

    /// The link of the client's own thread.
    pub(crate) fn link(&self) -> Link {
        Link(self.newest.load(Ordering::Acquire))
    }

    pub(super) fn next_link(&self) -> Link {
        Link(self.links.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// From now on nothing is current that comes over the link before.
    pub(super) fn leave_link(&self) {
        self.newest.store(self.next_link().0, Ordering::Release);
    }

    /// Reads the connection of the client's own thread, if it is up.
    pub(super) fn with_main<T>(&self, read: impl FnOnce(&Arc<Connected>) -> T) -> Option<T> {
        match &*self.state.borrow() {
            ConnectionState::Up(main) => Some(read(main)),
            ConnectionState::Down(_) | ConnectionState::Closed => None,
        }
    }

    /// Listens on another channel of the client's own, if it is up. The next connection does so
    /// anyway.
    pub(crate) fn hear(&self, channel: &str) {
        self.hear_these(|_| vec![channel.to_owned()]);
    }

    /// Listens on all channels of the client's own. Called when it is up: whoever begins to use a
    /// view calls [`hear`](Self::hear), before or after that.
    pub(super) fn hear_all(&self) {
        self.hear_these(ClientChannels::all);
    }

    fn hear_these(&self, these: impl FnOnce(&ClientChannels) -> Vec<String>) {
        if let Some(own) = &self.context.channels {
            self.with_main(|main| {
                let (channels, own) = (these(own), Arc::clone(own));
                main.subscriptions.hear(&main.connection, channels, own);
            });
        }
    }

    /// Listens on these channels of the client's own no longer.
    pub(crate) fn forget(&self, channels: &[String]) {
        let Some(own) = &self.context.channels else {
            return;
        };
        self.with_main(|main| {
            let channels = channels.to_vec();
            main.subscriptions
                .forget(&main.connection, channels, Arc::clone(own));
        });
    }

    /// The connection of a link that is in use.
    pub(super) fn connected_of(&self, link: Link) -> Option<Arc<Connected>> {
        let main = self.with_main(|main| (main.link == link).then(|| Arc::clone(main)));
        main.flatten()
            .or_else(|| match self.runtimes.find(link, self.main_link())? {
                Found::Up(up, _) => Some(up),
                Found::Making(_) => None,
            })
    }

    /// Without a lock: each command asks.
    fn main_link(&self) -> Option<Link> {
        let link = self.up.load(Ordering::Acquire);
        (link != 0).then_some(Link(link))
    }

    /// Whether this link is in use: that of the client's thread, or one that a caller's runtime
    /// drives beside it.
    pub(super) fn is_current(&self, link: Link, of_runtime: bool) -> bool {
        if !of_runtime {
            return self.link() == link;
        }
        let main = self.main_link();
        main.is_some_and(|main| self.runtimes.has(link, main))
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
        self.set(|state| {
            std::mem::swap(state, &mut before);
            true
        });
        self.runtimes.keep_beside(None);
        if let Some(supervisor) = self.supervisor.get() {
            supervisor.abort();
        }
        if let (ConnectionState::Up(up), Some(listener)) = (before, self.context.listener.upgrade())
        {
            let text = "the connection is not needed any more";
            let error = StoreError::new(StoreErrorKind::Disconnected, text);
            listener.disconnected(&up.address(), &error);
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
        Err(without_effect(error))
    }

    /// Whether somebody waits for a connection, or has most likely not stopped to need one: who
    /// gave up asks again after a pause, which ends as soon as there is one.
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
    pub(crate) async fn first_attempt(&self, by: Instant) -> Result<(), StoreError> {
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

    /// Sends one request over this link, or over the client's own if that is gone, and judges the
    /// connection by the answer.
    pub(crate) async fn exchange(
        &self,
        via: Link,
        by: Instant,
        request: &Request,
        asking: bool,
    ) -> Result<Answered, Failure> {
        let Chosen { up, of } = self.choose(via, by).await?;
        let clock = &self.context.clock;
        let sent = clock.now();
        let late = match request.blocks() {
            true => by,
            false => sent + doubt::late(self.context.timeouts.command),
        };
        let mark = up.mark();
        let under_way = up.traffic.begin();
        let answer = {
            let mut answer = pin!(request.run(&up, asking));
            match clock.by_from(sent, by.min(late), answer.as_mut()).await {
                None if late < by => {
                    let more = self.wait_longer(&up, of, by, request, mark, answer);
                    // Boxed, like everything rare here.
                    Box::pin(more).await
                }
                answer => answer,
            }
        };
        drop(under_way);
        let result = self.judge(&up, of, sent, by, answer)?;
        Ok(Answered {
            link: up.link,
            counts_from: up.counts_from,
            result,
        })
    }

    /// The same for what is more than one request.
    pub(crate) async fn exchange_with<T>(
        &self,
        via: Link,
        by: Instant,
        exchange: impl AsyncFnOnce(&Connected) -> Result<T, RedisError>,
    ) -> Result<(Link, Result<T, RedisError>), Failure> {
        let Chosen { up, of } = self.choose(via, by).await?;
        let sent = self.context.clock.now();
        let answer = self.context.clock.by(by, exchange(&up)).await;
        let result = self.judge(&up, of, sent, by, answer)?;
        Ok((up.link, result))
    }

    /// Waits on for an answer that is late, and has the connection doubted. A request that is
    /// repeated does not wait for a connection that was replaced.
    ///
    /// Slow is not dead. The time of a patient request counts from when it was written, and goes on
    /// as long as anything is read, and a little longer if this process is slow itself.
    async fn wait_longer<T>(
        &self,
        up: &Connected,
        of: DrivenBy,
        by: Instant,
        request: &Request,
        mark: Mark,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        let over = up.link;
        let main = match of {
            DrivenBy::Client => over,
            DrivenBy::Runtime { main } => main,
        };
        let mut is_written = up.traffic.has_written_since(mark);
        let doubts = || drop(self.reports.send(Report::Late { over, main }));
        // What was not written yet waits for this process.
        if is_written {
            doubts();
        }
        let mut states = self.state.subscribe();
        let is_other =
            |state: &ConnectionState| matches!(state, ConnectionState::Up(up) if up.link != main);
        let replaced = async {
            if !request.is_repeated() || states.wait_for(is_other).await.map(drop).is_err() {
                pending::<()>().await;
            }
        };
        let answer = async {
            tokio::select! {
                biased;
                answer = answer => Some(answer),
                () = replaced => None,
            }
        };
        let mut answer = pin!(answer);
        let (traffic, clock) = (&up.traffic, &self.context.clock);
        let (patience, command) = (request.patience(), self.context.timeouts.command);
        let patience = patience.unwrap_or(by).max(by);
        let mut limit = match is_written {
            true => by,
            false => patience.min(clock.now() + command),
        };
        let (mut reads, mut silent) = (traffic.reads(), 0);
        loop {
            let tick = limit.min(clock.now() + TICK);
            if let Some(answer) = clock.by(tick, answer.as_mut()).await {
                return answer;
            }
            if tick < limit {
                continue;
            }
            // A process that is slow itself may not have read yet what came.
            let is_slow = clock.now() > limit + SLACK || is_crowded();
            let before = std::mem::replace(&mut reads, traffic.reads());
            silent = if reads == before { silent + 1 } else { 0 };
            let is_silent = silent >= SILENT_TIMES || (silent > 0 && is_written && !is_slow);
            if limit >= patience || is_silent {
                return None;
            }
            if !is_written && traffic.has_written_since(mark) {
                is_written = true;
                doubts();
            }
            limit = patience.min(limit + command);
        }
    }

    /// The connection of this link, or the client's own if that is gone.
    async fn choose(&self, via: Link, by: Instant) -> Result<Chosen, Failure> {
        match self.runtimes.find(via, self.main_link()) {
            Some(Found::Up(up, main)) => return Ok(Chosen::of_runtime(up, main)),
            // Boxed, like everything rare here: every command has room for the largest of what it
            // may wait for.
            Some(Found::Making(making)) => {
                return Box::pin(self.choose_made(via, by, making)).await;
            }
            None => {}
        }
        match self.with_main(Arc::clone) {
            Some(up) => Ok(Chosen::main(up)),
            None => Box::pin(self.get(by)).await.map(Chosen::main),
        }
    }

    /// The connection of a link that is being made, or the client's own if that takes long.
    async fn choose_made(
        &self,
        via: Link,
        by: Instant,
        mut making: watch::Receiver<()>,
    ) -> Result<Chosen, Failure> {
        let clock = &self.context.clock;
        // The command itself still has nearly all of its time.
        let soon = by.min(clock.now() + self.context.timeouts.command / 10);
        let made = clock.by(soon, making.changed()).await;
        if made.is_none() {
            self.runtimes.give_up(via, clock.now() + BACKOFF_MAX);
        }
        match self.runtimes.find(via, self.main_link()) {
            Some(Found::Up(up, main)) => Ok(Chosen::of_runtime(up, main)),
            Some(Found::Making(_)) | None => self.get(by).await.map(Chosen::main),
        }
    }

    /// What an answer, or that there was none in time, says about the connection.
    fn judge<T>(
        &self,
        up: &Connected,
        of: DrivenBy,
        sent: Instant,
        by: Instant,
        answer: Option<Result<T, RedisError>>,
    ) -> Result<Result<T, RedisError>, Failure> {
        let link = up.link;
        let Some(result) = answer else {
            self.not_answered(link, of, sent, by);
            let error = StoreError::new(StoreErrorKind::Timeout, "the command was not answered");
            return Err(maybe_carried_out(error.of(&up.address()), link));
        };
        if let Err(error) = up.subscriptions.check() {
            return Err(maybe_carried_out(error.of(&up.address()), link));
        }
        if let Err(error) = &result
            && errors::kind(error) == StoreErrorKind::Denied
        {
            self.denied.notify_one();
        }
        match (&result, of) {
            (Err(error), of) if errors::kind(error) == StoreErrorKind::Disconnected => {
                let error = errors::store_error(error).of(&up.address());
                match of {
                    DrivenBy::Runtime { .. } => {
                        self.do_without(link, self.context.clock.now() + BACKOFF_MAX);
                    }
                    DrivenBy::Client => self.report(link, error.clone()),
                }
                return Err(maybe_carried_out(error, link));
            }
            // Behind a name that moved to a new master, a new connection finds it.
            (Err(error), of) if errors::is_replica(error) => {
                let main = match of {
                    DrivenBy::Runtime { main } => {
                        self.do_without(link, self.context.clock.now() + BACKOFF_MAX);
                        main
                    }
                    DrivenBy::Client => link,
                };
                self.report(main, errors::store_error(error));
            }
            (_, DrivenBy::Runtime { .. }) => {}
            (_, DrivenBy::Client) => self.silent.store(0, Ordering::Release),
        }
        up.traffic.read();
        Ok(result)
    }

    fn not_answered(&self, link: Link, of: DrivenBy, sent: Instant, by: Instant) {
        let limit = self.context.timeouts.command;
        // A command whose time was cut by its request's budget says nothing about the connection.
        if by < sent + limit - limit / 10 {
            return;
        }
        if let DrivenBy::Runtime { .. } = of {
            self.do_without(link, self.context.clock.now() + REST_IF_SILENT);
        } else if self.link() == link
            && self.silent.fetch_add(1, Ordering::AcqRel) + 1 >= SILENT_COMMANDS
        {
            let text = "commands in a row were not answered";
            self.report(link, StoreError::new(StoreErrorKind::Timeout, text));
        }
    }

    /// Asks the server about itself. The connection is not judged by the answer.
    pub(crate) async fn look(
        &self,
        by: Instant,
        ask: impl AsyncFnOnce(&Connected) -> Result<ServerHealth, RedisError>,
    ) -> Result<ServerHealth, StoreError> {
        let clock = &self.context.clock;
        let up = self.get(by).await.map_err(|failure| failure.error)?;
        let Some(result) = clock.by(by, ask(&up)).await else {
            return Err(errors::no_self_description().of(&up.address()));
        };
        let named = |error: StoreError| error.of(&up.address());
        up.subscriptions.check().map_err(named)?;
        let mut health = result.map_err(|error| named(errors::store_error(&error)))?;
        health.connected_for = clock.now().saturating_duration_since(up.since);
        health.reconnects = self.made.load(Ordering::Acquire).saturating_sub(1);
        Ok(health)
    }

    /// Says that the connection of this link is of no use any more.
    pub(super) fn report(&self, link: Link, error: StoreError) {
        let _ = self.reports.send(Report::Broken(link, error));
    }

    /// Leaves a runtime without a connection until then. Requests that listen over it recheck.
    pub(super) fn do_without(&self, link: Link, until: Instant) {
        let now = self.context.clock.now();
        if self.runtimes.rest(link, until, now) {
            self.notify_lost(link);
        }
    }

    pub(super) fn notify_lost(&self, link: Link) {
        if let Some(listener) = self.context.listener.upgrade() {
            listener.lost(link);
        }
    }

    /// Puts a new connection in use, also instead of one that is up.
    pub(super) fn bring_up(&self, up: Connected) {
        let link = up.link;
        self.newest.store(link.0, Ordering::Release);
        self.silent.store(0, Ordering::Release);
        self.made.fetch_add(1, Ordering::AcqRel);
        self.change(ConnectionState::Up(Arc::new(up)));
        self.runtimes.keep_beside(Some(link));
    }

    /// An attempt to connect has failed.
    pub(super) fn stay_down(&self, error: StoreError) {
        self.change(ConnectionState::Down(Some(error)));
    }

    /// A closed connection stays closed.
    fn change(&self, to: ConnectionState) {
        self.set(|state| match state {
            ConnectionState::Closed => false,
            _ => {
                *state = to;
                true
            }
        });
    }

    /// `modify` says whether it has changed the state.
    fn set(&self, modify: impl FnOnce(&mut ConnectionState) -> bool) {
        self.state.send_if_modified(|state| {
            let is_new = modify(state);
            let up = match state {
                ConnectionState::Up(up) => up.link.0,
                ConnectionState::Down(_) | ConnectionState::Closed => 0,
            };
            self.up.store(up, Ordering::Release);
            is_new
        });
    }

    /// Takes the connection of this link out of use.
    pub(super) fn take_down(&self, link: Link, error: StoreError) {
        self.set(|state| {
            let current = matches!(state, ConnectionState::Up(up) if up.link == link);
            if current {
                *state = ConnectionState::Down(Some(error));
            }
            current
        });
        self.runtimes.keep_beside(None);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}
