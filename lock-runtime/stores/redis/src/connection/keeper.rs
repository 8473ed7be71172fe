//! The task that makes and replaces connections.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::{BACKOFF_MAX, BACKOFF_MIN, Timeouts};
use lock_store::{Clock, Link, Listener, StoreError};
use tokio::sync::mpsc;

use super::ear::Ear;
use super::{Channels, Connected, Connection, State};
use crate::cluster::Membership;
use crate::errors;
use crate::target::{Reached, Target};

/// The task that makes and replaces connections.
pub(super) struct Keeper {
    pub(super) target: Target,
    pub(super) timeouts: Timeouts,
    pub(super) connection: Weak<Connection>,
    pub(super) listener: Weak<dyn Listener>,
    pub(super) membership: Option<Membership>,
}

impl Keeper {
    pub(super) async fn run(
        self,
        clock: Clock,
        mut broken: mpsc::UnboundedReceiver<(Link, StoreError)>,
    ) {
        let mut backoff = BACKOFF_MIN;
        let mut channels = Vec::new();
        loop {
            let Some(shared) = self.connection.upgrade() else {
                return;
            };
            let link = shared.next_link();
            shared.newest.store(link.0, Ordering::Release);
            let by = clock.now() + self.timeouts.connect;
            let attempt = clock.by(by, self.connect(&shared, link, &channels)).await;
            let error = match attempt {
                Some(Ok((up, reached))) => {
                    let server = up.address();
                    tracing::debug!(link = link.0, %server, "connected to the lock store");
                    let subscribed = Arc::clone(&up.channels);
                    shared.silent.store(0, Ordering::Release);
                    shared.made.fetch_add(1, Ordering::AcqRel);
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
                    // In a cluster, who waits knows best what to listen on, and where.
                    if self.membership.is_none() {
                        channels = subscribed.established();
                    }
                    if clock.now() > up_since + BACKOFF_MAX {
                        backoff = BACKOFF_MIN;
                    }
                    tracing::warn!(link = link.0, %error, %server, "the connection to the lock store is replaced");
                    self.look_again();
                    error
                }
                Some(Err(error)) => error,
                None => self.target.silent(),
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
        channels: &[String],
    ) -> Result<(Connected, Reached), StoreError> {
        let heard = Channels::new(&shared.clock);
        let ear = Ear {
            link,
            near: false,
            listener: self.listener.clone(),
            connection: self.connection.clone(),
            membership: self.membership.clone(),
            channels: Arc::clone(&heard),
        };
        let config = ear.config();
        let reached = self.target.connect(&config).await?;
        let mut up = Connected {
            link,
            connection: reached.connection.clone(),
            since: shared.clock.now(),
            client: Arc::clone(&reached.client),
            sharded: self.membership.is_some(),
            counts_from: reached.counts_from,
            channels: heard,
        };
        for channel in channels {
            let subscribed = up.subscribe(channel, false).await;
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
            listener.recheck();
        }
    }
}

/// Between half and all of the back-off, different for each client and attempt.
fn jittered(backoff: Duration, attempt: u64) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let share = RandomState::new().hash_one(attempt) % 512;
    backoff / 2 + backoff * u32::try_from(share).unwrap_or(0) / 1024
}
