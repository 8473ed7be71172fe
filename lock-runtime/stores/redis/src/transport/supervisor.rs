//! [`open`]: a connection, and the task that makes and replaces it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::{BACKOFF_MAX, backoff};
use lock_store::{Link, StoreError};
use tokio::sync::mpsc;

use super::connected::Connected;
use super::connection::Connection;
use super::push::{Believes, PushHandler};
use super::subscribe::Subscriptions;
use crate::context::ClientContext;
use crate::topology::endpoint::{Endpoint, Reached};
use crate::{errors, random};

/// Starts to connect, in the background. `links` counts the links of all connections of a store.
pub(crate) fn open(
    endpoint: Endpoint,
    context: ClientContext,
    links: Arc<AtomicU64>,
    believes: Option<Believes>,
) -> Arc<Connection> {
    let (broken, broken_links) = mpsc::unbounded_channel();
    let allows_runtimes = believes.is_none() && !matches!(endpoint, Endpoint::Member(..));
    let connection = Connection::new(context.clone(), links, allows_runtimes, broken);
    let connection = Arc::new(connection);
    let runtime = context.clock.handle().clone();
    let supervisor = Supervisor {
        endpoint,
        context,
        connection: Arc::downgrade(&connection),
        believes,
    };
    let task = runtime.spawn(supervisor.run(broken_links));
    connection.set_supervisor(task.abort_handle());
    connection
}

struct Supervisor {
    endpoint: Endpoint,
    context: ClientContext,
    connection: Weak<Connection>,
    /// Only in a cluster.
    believes: Option<Believes>,
}

impl Supervisor {
    async fn run(self, mut broken: mpsc::UnboundedReceiver<(Link, StoreError)>) {
        let clock = &self.context.clock;
        let (mut failures, mut channels) = (0_u32, Vec::new());
        loop {
            let Some(shared) = self.connection.upgrade() else {
                return;
            };
            let link = shared.renewed_link();
            let by = clock.now() + self.context.timeouts.connect;
            let error = match clock.by(by, self.connect(link, &channels)).await {
                Some(Ok((up, reached))) => {
                    let server = up.address();
                    tracing::debug!(link = link.0, %server, "connected to the lock store");
                    let subscriptions = Arc::clone(&up.subscriptions);
                    shared.bring_up(up);
                    drop(shared);
                    self.recheck();
                    let up_since = clock.now();
                    let Some(error) = self.until_broken(link, reached, &mut broken).await else {
                        return;
                    };
                    // In a cluster, each request that waits knows best what to listen on, and
                    // where.
                    if self.believes.is_none() {
                        channels = subscriptions.established();
                    }
                    if clock.now() > up_since + BACKOFF_MAX {
                        failures = 0;
                    }
                    tracing::warn!(link = link.0, %error, %server, "the connection to the lock store is replaced");
                    self.recheck();
                    error
                }
                Some(Err(error)) => error,
                None => self.endpoint.silent(),
            };
            failures = failures.saturating_add(1);
            let backoff = backoff(failures);
            if let Some(shared) = self.connection.upgrade() {
                tracing::debug!(link = link.0, %error, ?backoff, "connecting to the lock store again soon");
                shared.stay_down(error);
            }
            clock.sleep_until(clock.now() + jittered(backoff)).await;
        }
    }

    async fn connect(
        &self,
        link: Link,
        channels: &[String],
    ) -> Result<(Connected, Reached), StoreError> {
        let clock = &self.context.clock;
        let subscriptions = Subscriptions::new(clock, self.believes.is_some());
        let handler = PushHandler {
            link,
            of_runtime: false,
            listener: self.context.listener.clone(),
            connection: self.connection.clone(),
            believes: self.believes.clone(),
            subscriptions: Arc::clone(&subscriptions),
        };
        let reached = self.endpoint.connect(&handler.config()).await?;
        let up = Connected {
            link,
            connection: reached.connection.clone(),
            since: clock.now(),
            client: Arc::clone(&reached.client),
            counts_from: reached.counts_from,
            subscriptions,
        };
        for channel in channels {
            let subscribed = up.subscriptions.subscribe(&up.connection, channel, false);
            let subscribed = subscribed.await;
            subscribed.map_err(|error| errors::store_error(&error))?;
        }
        Ok((up, reached))
    }

    /// Waits until this connection is reported broken, or found to lead to the wrong server, and
    /// takes it out of use.
    async fn until_broken(
        &self,
        link: Link,
        mut reached: Reached,
        broken: &mut mpsc::UnboundedReceiver<(Link, StoreError)>,
    ) -> Option<StoreError> {
        let (clock, command) = (&self.context.clock, self.context.timeouts.command);
        let outdated = self.endpoint.outdated(&mut reached, clock, command);
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

    fn recheck(&self) {
        if let Some(listener) = self.context.listener.upgrade() {
            listener.recheck();
        }
    }
}

/// Between half and all of the back-off, another time at each attempt.
fn jittered(backoff: Duration) -> Duration {
    backoff / 2 + random::below(backoff / 2)
}
