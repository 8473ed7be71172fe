//! A connection that is up, and what is heard over it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lock_store::{Clock, Link, StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError, Value};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use crate::request;

/// A connection of one number; commands over it are carried out in order.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    pub(crate) link: Link,
    pub(crate) connection: MultiplexedConnection,
    /// When it was made.
    pub(super) since: Instant,
    /// What makes another connection to the same server.
    pub(super) client: Arc<Client>,
    /// To a node of a cluster, where channels belong to slots.
    pub(super) sharded: bool,
    /// To a server of a quorum: from when on what it says counts there.
    pub(crate) counts_from: Option<Instant>,
    pub(super) channels: Arc<Channels>,
}

/// What is heard over one connection.
#[derive(Debug)]
pub(crate) struct Channels {
    /// The client's own.
    runtime: Handle,
    /// In a cluster there is at most one for each slot, so none is ever given up.
    subscribed: Mutex<HashMap<String, Arc<OnceCell<()>>>>,
    /// A subscription ended that nobody gave up (the slot went to another node). The redis crate takes the server's word
    /// of that for the reply to some command, so that from then on every reply may be that of another command.
    pub(super) mixed_up: AtomicBool,
}

impl Connected {
    /// The server's address.
    pub(crate) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Listens on a channel of this connection, once.
    pub(crate) async fn subscribe(
        &mut self,
        channel: &str,
        asking: bool,
    ) -> Result<(), RedisError> {
        let made = {
            let mut subscribed = self.channels.subscribed();
            match subscribed.get(channel) {
                Some(made) => Arc::clone(made),
                None => Arc::clone(subscribed.entry(channel.to_owned()).or_default()),
            }
        };
        if made.initialized() {
            return Ok(());
        }
        // By a task of the client: others wait for it, and whoever is the first may not be polled again.
        let (mut up, channel) = (self.clone(), channel.to_owned());
        let subscribed = self.channels.runtime.spawn(async move {
            let subscribe = async || up.subscribe_now(&channel, asking).await;
            made.get_or_try_init(subscribe).await.copied()
        });
        subscribed.await.unwrap_or_else(|_| {
            let ended = std::io::Error::other("the client's thread has ended");
            Err(RedisError::from(ended))
        })
    }

    async fn subscribe_now(&mut self, channel: &str, asking: bool) -> Result<(), RedisError> {
        if !self.sharded {
            return self.connection.subscribe(channel).await;
        }
        let mut subscribe = redis::cmd("SSUBSCRIBE");
        subscribe.arg(channel);
        let reply = request::send::<Value>(self, &subscribe, asking);
        reply.await.map(drop)
    }
}

impl Channels {
    pub(super) fn new(clock: &Clock) -> Arc<Self> {
        Arc::new(Self {
            runtime: clock.handle().clone(),
            subscribed: Mutex::default(),
            mixed_up: AtomicBool::new(false),
        })
    }

    fn subscribed(&self) -> MutexGuard<'_, HashMap<String, Arc<OnceCell<()>>>> {
        self.subscribed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What a new connection should listen on as well.
    pub(super) fn established(&self) -> Vec<String> {
        let subscribed = self.subscribed();
        let made = subscribed.iter().filter(|(_, made)| made.initialized());
        made.map(|(channel, _)| channel.clone()).collect()
    }
}

pub(super) fn mixed_up() -> StoreError {
    let text = "the slot of a lock that is waited for went to another node";
    StoreError::new(StoreErrorKind::Disconnected, text)
}
