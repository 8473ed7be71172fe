//! [`Listening`]: the session that hears what is told to this client.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::{Timeouts, backoff};
use lock_store::{
    ClientId, Clock, HandedOver, Link, Listener, Namespace, Owner, StoreError, StoreErrorKind,
    Trust,
};
use tokio::sync::{oneshot, watch};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use crate::connection::hello;
use crate::errors::of_postgres;
use crate::messages::News;

/// How often the session is asked whether it is there.
const PING: Duration = Duration::from_secs(5);

/// The link of what is heard. No command goes over it.
const HEARD: Link = Link(1);

/// Passes on what this client is told.
#[derive(Clone, Debug)]
pub(crate) struct Hearer {
    pub(crate) client: ClientId,
    pub(crate) namespace: Namespace,
    pub(crate) listener: Weak<dyn Listener>,
}

impl Hearer {
    pub(crate) fn hear(&self, payload: &str) {
        let Some(listener) = self.listener.upgrade() else {
            return;
        };
        match News::read(payload) {
            Some(News::Granted { request, token }) => {
                let owner = Owner {
                    client: self.client,
                    request,
                };
                // Anybody may write to the channel: the owner asks.
                drop(listener.granted(HandedOver::new(owner, token, Trust::Ask(HEARD))));
            }
            Some(news) => {
                if let Some(message) = news.message_for(&self.namespace) {
                    listener.told(message);
                }
            }
            None => {}
        }
    }
}

/// The session that listens.
pub(crate) struct Listening {
    pub(crate) config: Config,
    pub(crate) address: String,
    pub(crate) client: Vec<u8>,
    pub(crate) hearer: Hearer,
    pub(crate) clock: Clock,
    pub(crate) timeouts: Timeouts,
    /// Becomes true when it is over.
    pub(crate) closed: watch::Receiver<bool>,
    /// Becomes true after the first attempt.
    pub(crate) tried: watch::Sender<bool>,
}

impl Listening {
    /// Listens until the store is closed.
    pub(crate) async fn run(mut self) {
        let mut failures = 0;
        while !*self.closed.borrow() {
            let by = self.clock.now() + self.timeouts.connect;
            let opened = self.clock.by(by, self.open()).await;
            match opened {
                Some(Ok((session, ended))) => {
                    failures = 0;
                    self.recheck();
                    let _ = self.tried.send(true);
                    self.stay(session, ended).await;
                    // What was told meanwhile is lost.
                    self.recheck();
                }
                failed => {
                    let text = "it did not let this client in within the connect timeout";
                    let late = || StoreError::new(StoreErrorKind::Timeout, text).of(&self.address);
                    let error = failed.and_then(Result::err).unwrap_or_else(late);
                    tracing::debug!(%error, "the lock store: this client can't listen");
                    let _ = self.tried.send(true);
                }
            }
            failures += 1;
            let again = self.clock.now() + backoff(failures);
            let clock = self.clock.clone();
            tokio::select! {
                () = clock.sleep_until(again) => {}
                changed = self.closed.changed() => if changed.is_err() { return },
            }
        }
    }

    fn recheck(&self) {
        if let Some(listener) = self.hearer.listener.upgrade() {
            listener.recheck();
        }
    }

    async fn open(&self) -> Result<(Client, oneshot::Receiver<()>), StoreError> {
        let failed = |error| of_postgres(&error, &self.address);
        let (session, mut driver) = self.config.connect(NoTls).await.map_err(failed)?;
        let (gone, ended) = oneshot::channel();
        let hearer = self.hearer.clone();
        self.clock.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|task| driver.poll_message(task)).await {
                if let AsyncMessage::Notification(note) = message {
                    hearer.hear(note.payload());
                }
            }
            drop(gone);
        });
        let said = hello(&session, &self.client, &self.address).await?;
        // The name of a channel is made of letters, digits and `_`.
        let listen = format!("LISTEN {}", said.channel);
        session.batch_execute(&listen).await.map_err(failed)?;
        session
            .query_typed(
                "SELECT pg_advisory_lock_shared($1)",
                &[(&said.listens, Type::INT8)],
            )
            .await
            .map_err(failed)?;
        Ok((session, ended))
    }

    /// Until the session ends, or does not answer, or the store is closed.
    async fn stay(&mut self, session: Client, mut ended: oneshot::Receiver<()>) {
        let clock = self.clock.clone();
        loop {
            tokio::select! {
                _ = &mut ended => return,
                changed = self.closed.changed() => if changed.is_err() || *self.closed.borrow() {
                    return;
                },
                () = clock.sleep_until(clock.now() + PING) => {
                    let by = clock.now() + PING;
                    let ping = session.query_typed("SELECT 1", &[]);
                    if !matches!(clock.by(by, ping).await, Some(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }
}
