//! One connection at a time: made, watched, and replaced when it is gone, no longer answers, or leads to a replica.
//!
//! The redis crate's own reconnecting connection is not used: its time limit does not cover the wait for a reconnect
//! (a command to a dead server blocked for 9 s), and it keeps a peer that stopped answering for ever.

mod keeper;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::task::AbortHandle;

use self::keeper::Keeper;
use super::errors;
use super::target::Target;
use crate::clock::Clock;
use crate::config::Timeouts;
use crate::error::{StoreError, StoreErrorKind};
use crate::store::{Failure, Link, Listener};

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
        target: Target,
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
            target,
            timeouts,
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
