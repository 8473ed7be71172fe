//! [`Pool`]: the connections for commands. All commands for one key go over the same one.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::{Timeouts, backoff};
use lock_store::{Clock, Failure, Instant, Link, Listener, Mutex, StoreError, StoreErrorKind};
use tokio::sync::oneshot;
use tokio_postgres::{Config, NoTls};

use crate::connection::{Connection, Hello, hello, prepared};
use crate::errors::of_postgres;

/// A session that has not answered for so long is left, and another is opened.
const SILENCE: Duration = Duration::from_secs(5);

/// The numbers of the links of one connection's sessions.
const LINKS: u64 = 128;

/// The connections.
pub(crate) struct Pool {
    slots: Vec<Mutex<Slot>>,
    pub(crate) address: String,
    pub(crate) clock: Clock,
    pub(crate) timeouts: Timeouts,
    config: Config,
    /// The client's identity.
    client: Vec<u8>,
    listener: Weak<dyn Listener>,
    is_closed: AtomicBool,
    up: AtomicUsize,
    /// Sessions that were left and have not ended. While there are many, no more are left.
    left: AtomicUsize,
    pub(crate) hello: Mutex<Option<Hello>>,
    pub(crate) connected: Mutex<Option<Instant>>,
    reconnects: AtomicUsize,
}

/// One connection: its sessions follow each other.
struct Slot {
    /// How many sessions there were.
    made: u64,
    state: State,
    failures: u32,
}

type Waiting = oneshot::Sender<Result<Arc<Connection>, StoreError>>;

enum State {
    Idle,
    Connecting(Vec<Waiting>),
    Up(Arc<Connection>),
    Failed(Instant, StoreError),
}

impl Pool {
    pub(crate) fn new(
        config: &Config,
        connections: usize,
        address: String,
        client: Vec<u8>,
        context: &lock_store::StoreContext,
    ) -> Self {
        let slot = || {
            Mutex::new(Slot {
                made: 0,
                state: State::Idle,
                failures: 0,
            })
        };
        let timeouts = context.timeouts;
        Self {
            slots: std::iter::repeat_with(slot).take(connections).collect(),
            address,
            clock: context.clock.clone(),
            timeouts,
            config: prepared(config, &context.name, timeouts.connect),
            client,
            listener: context.listener.clone(),
            is_closed: AtomicBool::new(false),
            up: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            hello: Mutex::new(None),
            connected: Mutex::new(None),
            reconnects: AtomicUsize::new(0),
        }
    }

    /// The connection for this name.
    pub(crate) fn place_of(&self, name: &[u8]) -> usize {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let slots = u64::try_from(self.slots.len()).unwrap_or(1);
        usize::try_from(hasher.finish() % slots).unwrap_or(0)
    }

    /// The link of this connection's session, or of the next one if there is none.
    pub(crate) fn link(&self, at: usize) -> Link {
        match &*self.slots[at].lock() {
            Slot {
                state: State::Up(connection),
                ..
            } if !connection.is_closed() => connection.link,
            slot => link(slot.made + 1, at),
        }
    }

    /// A session, made if there is none.
    pub(crate) async fn session(
        self: &Arc<Self>,
        at: usize,
        by: Instant,
    ) -> Result<Arc<Connection>, Failure> {
        let waits = {
            let mut slot = self.slots[at].lock();
            if self.is_closed() {
                return Err(Failure::without_effect(self.closed()));
            }
            match &mut slot.state {
                State::Up(connection) if !connection.is_closed() => {
                    return Ok(Arc::clone(connection));
                }
                State::Failed(again, error) if self.clock.now() < *again => {
                    return Err(Failure::without_effect(error.clone()));
                }
                State::Connecting(waiting) => {
                    let (done, waits) = oneshot::channel();
                    waiting.push(done);
                    waits
                }
                State::Idle | State::Failed(..) | State::Up(_) => {
                    let (done, waits) = oneshot::channel();
                    slot.state = State::Connecting(vec![done]);
                    slot.made += 1;
                    let made = slot.made;
                    let pool = Arc::clone(self);
                    self.clock.spawn(async move { pool.connect(at, made).await });
                    waits
                }
            }
        };
        let session = match self.clock.by(by, waits).await {
            Some(Ok(session)) => session,
            Some(Err(_)) => Err(self.closed()),
            None => {
                let text = "the connection was not there in time";
                Err(StoreError::new(StoreErrorKind::Timeout, text).of(&self.address))
            }
        };
        session.map_err(Failure::without_effect)
    }

    async fn connect(self: Arc<Self>, at: usize, made: u64) {
        let by = self.clock.now() + self.timeouts.connect;
        let opened = self.clock.by(by, self.open(at, made)).await;
        let opened = opened.unwrap_or_else(|| {
            let text = "it did not let this client in within the connect timeout";
            Err(StoreError::new(StoreErrorKind::Timeout, text).of(&self.address))
        });
        let mut slot = self.slots[at].lock();
        let state = match &opened {
            _ if self.is_closed() => State::Idle,
            Ok(connection) => {
                slot.failures = 0;
                State::Up(Arc::clone(connection))
            }
            Err(error) => {
                slot.failures += 1;
                State::Failed(self.clock.now() + backoff(slot.failures), error.clone())
            }
        };
        let before = std::mem::replace(&mut slot.state, state);
        drop(slot);
        if let State::Connecting(waiting) = before {
            for one in waiting {
                let _ = one.send(opened.clone());
            }
        }
    }

    async fn open(self: &Arc<Self>, at: usize, made: u64) -> Result<Arc<Connection>, StoreError> {
        let failed = |error| of_postgres(&error, &self.address);
        let (session, driver) = self.config.connect(NoTls).await.map_err(failed)?;
        let pool = Arc::clone(self);
        self.clock.spawn(async move {
            let ended = driver.await;
            pool.ended(at, link(made, at), ended.err());
        });
        let said = hello(&session, &self.client, &self.address).await?;
        *self.hello.lock() = Some(said);
        let now = self.clock.now();
        let connection = Arc::new(Connection::new(session, link(made, at), now));
        if self.up.fetch_add(1, Ordering::AcqRel) == 0 {
            if self.connected.lock().replace(now).is_some() {
                self.reconnects.fetch_add(1, Ordering::AcqRel);
            }
            if let Some(listener) = self.listener.upgrade() {
                listener.connected(&self.address);
            }
        }
        Ok(connection)
    }

    /// A session has ended, whether it was in use or left.
    fn ended(&self, at: usize, link: Link, error: Option<tokio_postgres::Error>) {
        let mut slot = self.slots[at].lock();
        let is_this = matches!(&slot.state, State::Up(up) if up.link == link);
        let before = is_this.then(|| std::mem::replace(&mut slot.state, State::Idle));
        drop(slot);
        if before.is_some() {
            self.is_down(error.map(|error| of_postgres(&error, &self.address)));
        } else {
            let less = |left: usize| left.checked_sub(1);
            let _ = self
                .left
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        }
    }

    fn is_down(&self, error: Option<StoreError>) {
        let less = |up: usize| up.checked_sub(1);
        let before = self
            .up
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        if before == Ok(1)
            && !self.is_closed()
            && let Some(listener) = self.listener.upgrade()
        {
            let text = "the server closed the connection";
            let gone = || StoreError::new(StoreErrorKind::Disconnected, text).of(&self.address);
            listener.disconnected(&self.address, &error.unwrap_or_else(gone));
        }
    }

    /// A command over this session was not answered in time. If the server has not answered anything
    /// there for long, the next command goes over another session.
    pub(crate) fn was_silent(&self, at: usize, session: &Arc<Connection>) {
        let silence = SILENCE.max(4 * self.timeouts.command);
        let is_silent = self.clock.now() > session.silent_since() + silence;
        if is_silent && self.left.load(Ordering::Acquire) < self.slots.len() {
            let text = "it has not answered anything for long";
            let error = StoreError::new(StoreErrorKind::Timeout, text).of(&self.address);
            self.leave(at, session, error);
        }
    }

    /// The next command goes over another session.
    pub(crate) fn leave(&self, at: usize, session: &Arc<Connection>, why: StoreError) {
        let mut slot = self.slots[at].lock();
        if !matches!(&slot.state, State::Up(up) if up.link == session.link) {
            return;
        }
        let before = std::mem::replace(&mut slot.state, State::Idle);
        drop(slot);
        drop(before);
        self.left.fetch_add(1, Ordering::AcqRel);
        self.is_down(Some(why));
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire) > 0
    }

    pub(crate) fn reconnects(&self) -> u64 {
        u64::try_from(self.reconnects.load(Ordering::Acquire)).unwrap_or(u64::MAX)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn closed(&self) -> StoreError {
        StoreError::new(StoreErrorKind::Disconnected, "the client was closed").of(&self.address)
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        for slot in &self.slots {
            let before = std::mem::replace(&mut slot.lock().state, State::Idle);
            drop(before);
        }
    }
}

fn link(made: u64, at: usize) -> Link {
    Link(made * LINKS + u64::try_from(at).unwrap_or(0))
}
