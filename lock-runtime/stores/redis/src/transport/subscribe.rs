//! SUBSCRIBE and SSUBSCRIBE: the channels that one connection listens on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_store::{Clock, Mutex, StoreError, StoreErrorKind};
use redis::RedisError;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::pipeline;
use crate::errors;

/// What is heard over one connection.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    /// The client's own.
    runtime: Handle,
    /// Whether the connection leads to a node of a cluster, where channels belong to slots.
    sharded: bool,
    /// One for each namespace that somebody has waited in, and in a cluster for each slot of it. No
    /// subscription is ever given up.
    channels: Mutex<HashMap<String, Arc<OnceCell<()>>>>,
    /// See [`mix_up`](Self::mix_up).
    mixed_up: AtomicBool,
}

impl Subscriptions {
    pub(crate) fn new(clock: &Clock, sharded: bool) -> Arc<Self> {
        Arc::new(Self {
            runtime: clock.handle().clone(),
            sharded,
            channels: Mutex::default(),
            mixed_up: AtomicBool::new(false),
        })
    }

    /// Listens on a channel of this connection, once.
    pub(crate) async fn subscribe(
        &self,
        connection: &MultiplexedConnection,
        channel: &str,
        asking: bool,
    ) -> Result<(), RedisError> {
        let made = {
            let mut channels = self.channels.lock();
            match channels.get(channel) {
                Some(made) => Arc::clone(made),
                None => Arc::clone(channels.entry(channel.to_owned()).or_default()),
            }
        };
        if made.initialized() {
            return Ok(());
        }
        // A task of the client subscribes: others wait for it as well, and the first caller may
        // stop polling.
        let (mut connection, channel) = (connection.clone(), channel.to_owned());
        let sharded = self.sharded;
        let subscribed = self.runtime.spawn(async move {
            let subscribe = async || send(&mut connection, sharded, &channel, asking).await;
            made.get_or_try_init(subscribe).await.copied()
        });
        subscribed.await.unwrap_or_else(|_| {
            let ended = std::io::Error::other("the client's thread has ended");
            Err(RedisError::from(ended))
        })
    }

    /// Listens in the background on channels that no slot owns, on a connection of the client's
    /// own. Who may not subscribe hears nothing there.
    pub(super) fn hear(&self, connection: &MultiplexedConnection, channels: Vec<String>) {
        let mut connection = connection.clone();
        self.runtime.spawn(async move {
            // One refused channel refuses the whole command: the first is the client's own.
            for channel in channels {
                if let Err(error) = connection.subscribe(channel).await {
                    let error = errors::store_error(&error);
                    tracing::debug!(%error, "this client does not hear other clients there");
                    if error.kind() != StoreErrorKind::Denied {
                        return;
                    }
                }
            }
        });
    }

    /// What a new connection should listen on as well.
    pub(crate) fn established(&self) -> Vec<String> {
        let channels = self.channels.lock();
        let made = channels.iter().filter(|(_, made)| made.initialized());
        made.map(|(channel, _)| channel.clone()).collect()
    }

    /// A subscription ended that we did not give up: its slot went to another node. The redis crate
    /// takes the server's word of that for the reply to some command, so from now on each reply may
    /// belong to another command.
    pub(crate) fn mix_up(&self) -> StoreError {
        self.mixed_up.store(true, Ordering::Release);
        mixed_up()
    }

    /// An error if replies may belong to other commands.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.mixed_up.load(Ordering::Acquire) {
            true => Err(mixed_up()),
            false => Ok(()),
        }
    }
}

async fn send(
    connection: &mut MultiplexedConnection,
    sharded: bool,
    channel: &str,
    asking: bool,
) -> Result<(), RedisError> {
    if !sharded {
        return connection.subscribe(channel).await;
    }
    let mut subscribe = redis::cmd("SSUBSCRIBE");
    subscribe.arg(channel);
    let reply = pipeline::send(connection, &subscribe, asking);
    reply.await.map(drop)
}

fn mixed_up() -> StoreError {
    let text = "the slot of a lock that is waited for went to another node";
    StoreError::new(StoreErrorKind::Disconnected, text)
}
