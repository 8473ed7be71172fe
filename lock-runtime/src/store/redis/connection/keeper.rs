//! The task that makes and replaces connections.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value};
use tokio::sync::mpsc;

use super::{Connected, Connection, State};
use crate::clock::Clock;
use crate::config::{BACKOFF_MAX, BACKOFF_MIN, Timeouts};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::redis::errors;
use crate::store::redis::target::{Reached, Target};
use crate::store::{Link, Listener, Owner};

/// The task that makes and replaces connections.
pub(super) struct Keeper {
    pub(super) target: Target,
    pub(super) timeouts: Timeouts,
    pub(super) connection: Weak<Connection>,
    pub(super) listener: Weak<dyn Listener>,
}

impl Keeper {
    pub(super) async fn run(
        self,
        clock: Clock,
        mut broken: mpsc::UnboundedReceiver<(Link, StoreError)>,
    ) {
        let mut backoff = BACKOFF_MIN;
        let mut was_subscribed = false;
        loop {
            let Some(shared) = self.connection.upgrade() else {
                return;
            };
            let link = Link(shared.newest.fetch_add(1, Ordering::AcqRel) + 1);
            let by = clock.now() + self.timeouts.connect;
            let attempt = clock
                .by(by, self.connect(&shared, link, was_subscribed))
                .await;
            let error = match attempt {
                Some(Ok((up, reached))) => {
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
                    let Some(error) = self.until_broken(link, reached, &mut broken, &clock).await
                    else {
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
                Some(Err(error)) => error,
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
    ) -> Result<(Connected, Reached), StoreError> {
        let (broken, listener) = (shared.broken.clone(), self.listener.clone());
        let connection = self.connection.clone();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| -> Result<(), redis::aio::SendError> {
                on_push(link, push, &broken, &listener, &connection);
                Ok(())
            });
        let reached = self.target.connect(&config).await?;
        let mut up = Connected {
            link,
            connection: reached.connection.clone(),
            subscribed: Arc::default(),
        };
        if subscribe {
            let subscribed = shared.subscribe(&mut up).await;
            subscribed.map_err(|error| errors::store_error(&error))?;
        }
        Ok((up, reached))
    }

    /// Waits until somebody reports this connection, or it is found to be the wrong one, and takes it out of use.
    async fn until_broken(
        &self,
        link: Link,
        mut reached: Reached,
        broken: &mut mpsc::UnboundedReceiver<(Link, StoreError)>,
        clock: &Clock,
    ) -> Option<StoreError> {
        let outdated = self
            .target
            .outdated(&mut reached, clock, self.timeouts.command);
        let mut outdated = std::pin::pin!(outdated);
        let error = loop {
            tokio::select! {
                reported = broken.recv() => match reported? {
                    (reported, error) if reported == link => break error,
                    _ => {}
                },
                error = &mut outdated => break error,
            }
        };
        self.connection.upgrade()?.take_down(link, error.clone());
        Some(error)
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
