//! One connection at a time: made, watched, and replaced when it is gone or no longer answers.
//!
//! The redis crate's own reconnecting connection is not used: its time limit does not cover the wait for a reconnect
//! (a command to a dead server blocked for 9 s), and it keeps a peer that stopped answering for ever.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind, RedisError, Value};
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::task::AbortHandle;

use super::errors;
use crate::clock::Clock;
use crate::config::{BACKOFF_MAX, BACKOFF_MIN, Timeouts};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::{Failure, Link, Listener, Owner};

/// So many commands in a row without an answer, and the connection is replaced.
const SILENT_COMMANDS: u32 = 2;

/// A connection of one number; commands over it are carried out in order.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    pub(super) link: Link,
    pub(super) connection: MultiplexedConnection,
    subscribed: Arc<OnceCell<()>>,
}

#[derive(Clone, Debug)]
enum State {
    /// No connection; why, if an attempt failed.
    Down(Option<StoreError>),
    Up(Connected),
    Closed,
}

/// Shared by the store and the task that keeps it connected.
#[derive(Debug)]
pub(super) struct Connection {
    clock: Clock,
    command_timeout: Duration,
    state: watch::Sender<State>,
    /// The number of the newest connection.
    newest: AtomicU64,
    /// Commands in a row that got no answer.
    silent: AtomicU32,
    broken: mpsc::UnboundedSender<(Link, StoreError)>,
    channel: String,
    keeper: std::sync::OnceLock<AbortHandle>,
}

impl Connection {
    /// Starts to connect, in the background.
    pub(super) fn open(
        client: Client,
        timeouts: Timeouts,
        channel: String,
        clock: Clock,
        listener: Weak<dyn Listener>,
    ) -> Arc<Self> {
        let (broken, broken_links) = mpsc::unbounded_channel();
        let connection = Arc::new(Self {
            clock: clock.clone(),
            command_timeout: timeouts.command,
            state: watch::Sender::new(State::Down(None)),
            newest: AtomicU64::new(0),
            silent: AtomicU32::new(0),
            broken,
            channel,
            keeper: std::sync::OnceLock::new(),
        });
        let keeper = Keeper {
            client,
            connect_timeout: timeouts.connect,
            connection: Arc::downgrade(&connection),
            listener,
        };
        let runtime = clock.handle().clone();
        let task = runtime.spawn(keeper.run(clock, broken_links));
        let _ = connection.keeper.set(task.abort_handle());
        connection
    }

    pub(super) fn link(&self) -> Link {
        Link(self.newest.load(Ordering::Acquire))
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.state.borrow(), State::Closed)
    }

    pub(super) fn close(&self) {
        self.state.send_replace(State::Closed);
        if let Some(keeper) = self.keeper.get() {
            keeper.abort();
        }
    }

    /// The connection, as soon as there is one. An error that does not pass by waiting is told at once.
    pub(super) async fn get(&self, by: Instant) -> Result<Connected, Failure> {
        if let State::Up(up) = &*self.state.borrow() {
            return Ok(up.clone());
        }
        let mut states = self.state.subscribe();
        let settled = states.wait_for(|state| match state {
            State::Down(Some(error)) => !error.kind().is_transient(),
            State::Down(None) => false,
            State::Up(_) | State::Closed => true,
        });
        let state = match self.clock.by(by, settled).await {
            Some(Ok(state)) => state.clone(),
            Some(Err(_)) => State::Closed,
            None => self.state.borrow().clone(),
        };
        let error = match state {
            State::Up(up) => return Ok(up),
            State::Down(Some(error)) => error,
            State::Down(None) => {
                StoreError::new(StoreErrorKind::Timeout, "connecting takes too long")
            }
            State::Closed => StoreError::new(StoreErrorKind::Refused, "the client was shut down"),
        };
        Err(Failure {
            error,
            unknown: None,
        })
    }

    /// Waits until the first attempt to connect has succeeded or failed.
    pub(super) async fn first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        let mut states = self.state.subscribe();
        let tried = states.wait_for(|state| !matches!(state, State::Down(None)));
        match self.clock.by(by, tried).await {
            Some(Ok(state)) => match &*state {
                State::Down(Some(error)) => Err(error.clone()),
                _ => Ok(()),
            },
            _ => Err(StoreError::new(
                StoreErrorKind::Timeout,
                "connecting takes too long",
            )),
        }
    }

    /// Runs one exchange over a connection and judges the connection by it.
    pub(super) async fn exchange<T>(
        &self,
        by: Instant,
        exchange: impl AsyncFnOnce(Connected) -> Result<T, RedisError>,
    ) -> Result<(Link, Result<T, RedisError>), Failure> {
        let up = self.get(by).await?;
        let (link, sent) = (up.link, self.clock.now());
        let Some(result) = self.clock.by(by, exchange(up)).await else {
            // A command whose time was cut by its request's budget says nothing about the connection.
            let whole = by >= sent + self.command_timeout - self.command_timeout / 10;
            if whole && self.silent.fetch_add(1, Ordering::AcqRel) + 1 >= SILENT_COMMANDS {
                self.report(
                    link,
                    StoreError::new(
                        StoreErrorKind::Timeout,
                        "commands in a row were not answered",
                    ),
                );
            }
            let error = StoreError::new(StoreErrorKind::Timeout, "the command was not answered");
            return Err(Failure {
                error,
                unknown: Some(link),
            });
        };
        match &result {
            Err(error) if errors::kind(error) == StoreErrorKind::Disconnected => {
                let error = errors::store_error(error);
                self.report(link, error.clone());
                return Err(Failure {
                    error,
                    unknown: Some(link),
                });
            }
            // Behind a name that moved to a new master, a new connection finds it.
            Err(error) if errors::is_replica(error) => {
                self.report(link, errors::store_error(error));
            }
            _ => self.silent.store(0, Ordering::Release),
        }
        Ok((link, result))
    }

    /// Listens for grants on this connection, once.
    pub(super) async fn subscribe(&self, up: &mut Connected) -> Result<(), RedisError> {
        let (subscribed, connection) = (Arc::clone(&up.subscribed), &mut up.connection);
        subscribed
            .get_or_try_init(|| connection.subscribe(&self.channel))
            .await
            .copied()
    }

    fn report(&self, link: Link, error: StoreError) {
        let _ = self.broken.send((link, error));
    }

    /// Whether the connection of this number was in use, and is no longer.
    fn take_down(&self, link: Link, error: StoreError) -> bool {
        self.state.send_if_modified(|state| {
            let current = matches!(state, State::Up(up) if up.link == link);
            if current {
                *state = State::Down(Some(error));
            }
            current
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

/// The task that makes and replaces connections.
struct Keeper {
    client: Client,
    connect_timeout: Duration,
    connection: Weak<Connection>,
    listener: Weak<dyn Listener>,
}

impl Keeper {
    async fn run(self, clock: Clock, mut broken: mpsc::UnboundedReceiver<(Link, StoreError)>) {
        let mut backoff = BACKOFF_MIN;
        let mut was_subscribed = false;
        loop {
            let Some(shared) = self.connection.upgrade() else {
                return;
            };
            let link = Link(shared.newest.fetch_add(1, Ordering::AcqRel) + 1);
            let by = clock.now() + self.connect_timeout;
            let attempt = clock
                .by(by, self.connect(&shared, link, was_subscribed))
                .await;
            let error = match attempt {
                Some(Ok(up)) => {
                    tracing::debug!(link = link.0, "connected to the lock store");
                    let subscribed = Arc::clone(&up.subscribed);
                    shared.silent.store(0, Ordering::Release);
                    shared.state.send_if_modified(|state| match state {
                        State::Closed => false,
                        _ => {
                            *state = State::Up(up);
                            true
                        }
                    });
                    drop(shared);
                    self.look_again();
                    let up_since = clock.now();
                    let Some(error) = self.until_broken(link, &mut broken).await else {
                        return;
                    };
                    was_subscribed |= subscribed.initialized();
                    if clock.now() > up_since + BACKOFF_MAX {
                        backoff = BACKOFF_MIN;
                    }
                    tracing::warn!(link = link.0, %error, "the connection to the lock store is replaced");
                    self.look_again();
                    error
                }
                Some(Err(error)) => errors::store_error(&error),
                None => StoreError::new(StoreErrorKind::Timeout, "connecting takes too long"),
            };
            if let Some(shared) = self.connection.upgrade() {
                tracing::debug!(link = link.0, %error, ?backoff, "connecting to the lock store again soon");
                shared.state.send_if_modified(|state| match state {
                    State::Closed => false,
                    _ => {
                        *state = State::Down(Some(error));
                        true
                    }
                });
            }
            clock
                .sleep_until(clock.now() + jittered(backoff, link.0))
                .await;
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    async fn connect(
        &self,
        shared: &Connection,
        link: Link,
        subscribe: bool,
    ) -> Result<Connected, RedisError> {
        let (broken, listener) = (shared.broken.clone(), self.listener.clone());
        let connection = self.connection.clone();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| -> Result<(), redis::aio::SendError> {
                on_push(link, push, &broken, &listener, &connection);
                Ok(())
            });
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let mut up = Connected {
            link,
            connection,
            subscribed: Arc::default(),
        };
        if subscribe {
            shared.subscribe(&mut up).await?;
        }
        Ok(up)
    }

    /// Waits until somebody reports this connection, and takes it out of use.
    async fn until_broken(
        &self,
        link: Link,
        broken: &mut mpsc::UnboundedReceiver<(Link, StoreError)>,
    ) -> Option<StoreError> {
        loop {
            let (reported, error) = broken.recv().await?;
            if reported == link {
                self.connection.upgrade()?.take_down(link, error.clone());
                return Some(error);
            }
        }
    }

    fn look_again(&self) {
        if let Some(listener) = self.listener.upgrade() {
            listener.look_again();
        }
    }
}

/// A push message of the server, or the redis crate's word that the connection is gone.
fn on_push(
    link: Link,
    push: PushInfo,
    broken: &mpsc::UnboundedSender<(Link, StoreError)>,
    listener: &Weak<dyn Listener>,
    connection: &Weak<Connection>,
) {
    match push.kind {
        PushKind::Disconnection => {
            let error = StoreError::new(StoreErrorKind::Disconnected, "the connection was closed");
            let _ = broken.send((link, error));
        }
        PushKind::Message => {
            // A message of a connection that was replaced may be older than replies of the new one.
            if connection
                .upgrade()
                .is_none_or(|connection| connection.link() != link)
            {
                return;
            }
            let Some(Value::BulkString(payload)) = push.data.get(1) else {
                return;
            };
            let parsed = std::str::from_utf8(payload).ok().and_then(|text| {
                let (owner, token) = text.split_once(' ')?;
                Some((Owner::parse(owner)?, token.parse().ok()))
            });
            if let (Some((owner, token)), Some(listener)) = (parsed, listener.upgrade()) {
                drop(listener.granted(owner, token));
            }
        }
        _ => {}
    }
}

/// Between half and all of the back-off, different for each client and attempt.
fn jittered(backoff: Duration, attempt: u64) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let share = RandomState::new().hash_one(attempt) % 512;
    backoff / 2 + backoff * u32::try_from(share).unwrap_or(0) / 1024
}
