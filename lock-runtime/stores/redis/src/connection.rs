//! One connection at a time: made, watched, and replaced when it is gone, no longer answers, or leads to a replica.
//!
//! The redis crate's own reconnecting connection is not used: its time limit does not cover the wait for a reconnect
//! (a command to a dead server blocked for 9 s), and it keeps a peer that stopped answering for ever.

mod connected;
mod ear;
mod keeper;
mod near;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lock_store::timing::{BACKOFF_MAX, Timeouts};
use lock_store::{Clock, Failure, Link, Listener, ServerHealth, StoreError, StoreErrorKind};
use redis::RedisError;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use self::connected::mixed_up;
use self::keeper::Keeper;
use self::near::{Found, Nearby, REST_IF_SILENT};
use super::cluster::Membership;
use super::errors;
use super::target::Target;

pub(super) use self::connected::{Channels, Connected};

/// So many commands in a row without an answer, and the connection is replaced.
const SILENT_COMMANDS: u32 = 2;

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
    connect_timeout: Duration,
    state: watch::Sender<State>,
    nearby: Nearby,
    /// Whether runtimes may have connections of their own.
    allows_near: bool,
    /// The numbers of links, which all connections of a store share.
    numbers: Arc<AtomicU64>,
    /// The number of its newest connection.
    newest: AtomicU64,
    /// How many connections were made.
    made: AtomicU64,
    /// Commands in a row that got no answer.
    silent: AtomicU32,
    broken: mpsc::UnboundedSender<(Link, StoreError)>,
    listener: Weak<dyn Listener>,
    keeper: std::sync::OnceLock<AbortHandle>,
}

impl Connection {
    /// Starts to connect, in the background.
    pub(super) fn open(
        target: Target,
        timeouts: Timeouts,
        numbers: Arc<AtomicU64>,
        clock: Clock,
        listener: Weak<dyn Listener>,
        membership: Option<Membership>,
    ) -> Arc<Self> {
        let (broken, broken_links) = mpsc::unbounded_channel();
        let connection = Arc::new(Self {
            clock: clock.clone(),
            command_timeout: timeouts.command,
            connect_timeout: timeouts.connect,
            state: watch::Sender::new(State::Down(None)),
            nearby: Nearby::default(),
            allows_near: membership.is_none() && !matches!(target, Target::Member(..)),
            numbers,
            newest: AtomicU64::new(0),
            made: AtomicU64::new(0),
            silent: AtomicU32::new(0),
            broken,
            listener: listener.clone(),
            keeper: std::sync::OnceLock::new(),
        });
        let keeper = Keeper {
            target,
            timeouts,
            connection: Arc::downgrade(&connection),
            listener,
            membership,
        };
        let runtime = clock.handle().clone();
        let task = runtime.spawn(keeper.run(clock, broken_links));
        let _ = connection.keeper.set(task.abort_handle());
        connection
    }

    /// The link of the client's own thread.
    pub(super) fn link(&self) -> Link {
        Link(self.newest.load(Ordering::Acquire))
    }

    /// The link for a command of the caller's: one that its own runtime drives, if there is one. Whoever is going to wait
    /// also takes one that is being made: it pays to hear of a grant there.
    pub(super) fn link_here(self: &Arc<Self>, going_to_wait: bool) -> Link {
        let near = match &*self.state.borrow() {
            State::Up(main) => self.near(main, going_to_wait),
            _ => None,
        };
        near.unwrap_or_else(|| self.link())
    }

    /// Whether the connection of this number is the one of the client's thread now, or `near` one beside that.
    fn is_current(&self, link: Link, near: bool) -> bool {
        if !near {
            return self.link() == link;
        }
        match &*self.state.borrow() {
            State::Up(main) => self.nearby.has(link, main.link),
            _ => false,
        }
    }

    /// The connection of this number, if a caller's runtime drives it: only beside the connection that it was made for,
    /// since another one may lead to another server.
    fn find_near(&self, link: Link) -> Option<Found> {
        let main = match &*self.state.borrow() {
            State::Up(main) => Some(main.link),
            State::Down(_) | State::Closed => None,
        };
        self.nearby.find(link, main)
    }

    fn next_link(&self) -> Link {
        Link(self.numbers.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Whether there is a connection now.
    pub(super) fn is_up(&self) -> bool {
        matches!(*self.state.borrow(), State::Up(_))
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.state.borrow(), State::Closed)
    }

    pub(super) fn close(&self) {
        self.state.send_replace(State::Closed);
        self.nearby.clear();
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

    /// Runs one exchange over the connection of this number, or the client's own if that is gone, and judges the
    /// connection by it.
    pub(super) async fn exchange<T>(
        &self,
        via: Link,
        by: Instant,
        exchange: impl AsyncFnOnce(Connected) -> Result<T, RedisError>,
    ) -> Result<(Link, Result<T, RedisError>), Failure> {
        let mut found = self.find_near(via);
        if let Some(Found::Making(making)) = found {
            // The command itself has nearly all of its time still.
            let soon = by.min(self.clock.now() + self.command_timeout / 10);
            let made = Box::pin(near::made(making, soon, &self.clock)).await;
            if made.is_none() {
                self.nearby.give_up(via, self.clock.now() + BACKOFF_MAX);
            }
            found = self.find_near(via);
        }
        let (up, main, is_near) = match found {
            Some(Found::Up(near, main)) => (near, main, true),
            Some(Found::Making(_)) | None => {
                let up = Box::pin(self.get(by)).await?;
                let main = up.link;
                (up, main, false)
            }
        };
        let (link, channels) = (up.link, Arc::clone(&up.channels));
        let sent = self.clock.now();
        let Some(result) = self.clock.by(by, exchange(up)).await else {
            // A command whose time was cut by its request's budget says nothing about the connection.
            let whole = by >= sent + self.command_timeout - self.command_timeout / 10;
            if whole && is_near {
                self.do_without(link, self.clock.now() + REST_IF_SILENT);
            } else if whole && self.silent.fetch_add(1, Ordering::AcqRel) + 1 >= SILENT_COMMANDS {
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
        if channels.mixed_up.load(Ordering::Acquire) {
            return Err(Failure {
                error: mixed_up(),
                unknown: Some(link),
            });
        }
        match &result {
            Err(error) if errors::kind(error) == StoreErrorKind::Disconnected => {
                let error = errors::store_error(error);
                if is_near {
                    self.do_without(link, self.clock.now() + BACKOFF_MAX);
                } else {
                    self.report(link, error.clone());
                }
                return Err(Failure {
                    error,
                    unknown: Some(link),
                });
            }
            // Behind a name that moved to a new master, a new connection finds it.
            Err(error) if errors::is_replica(error) => {
                if is_near {
                    self.do_without(link, self.clock.now() + BACKOFF_MAX);
                }
                self.report(main, errors::store_error(error));
            }
            _ if is_near => {}
            _ => self.silent.store(0, Ordering::Release),
        }
        Ok((link, result))
    }

    /// Asks the server about itself. However that ends, the connection is not judged by it.
    pub(super) async fn look(
        &self,
        by: Instant,
        ask: impl AsyncFnOnce(&mut Connected) -> Result<ServerHealth, RedisError>,
    ) -> Result<ServerHealth, StoreError> {
        let mut up = self.get(by).await.map_err(|failure| failure.error)?;
        let Some(result) = self.clock.by(by, ask(&mut up)).await else {
            let text = "it does not answer questions about itself";
            return Err(StoreError::new(StoreErrorKind::Timeout, text));
        };
        if up.channels.mixed_up.load(Ordering::Acquire) {
            return Err(mixed_up());
        }
        let mut health = result.map_err(|error| errors::store_error(&error))?;
        health.connected_for = self.clock.now().saturating_duration_since(up.since);
        health.reconnects = self.made.load(Ordering::Acquire).saturating_sub(1);
        Ok(health)
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
