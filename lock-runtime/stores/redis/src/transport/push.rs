//! [`PushHandler`]: what one connection says on its own.

use std::sync::{Arc, Weak};

use lock_store::{ClientMessage, Clock, HandedOver, Link, Listener, Trust};
use redis::RedisError;

use super::client_channels::ClientChannels;
use super::connection::Connection;
use super::foreign_channels::ForeignChannels;
use super::messages;
use super::subscribe::Subscriptions;
use crate::errors;
use crate::names::Prefix;
use crate::resp::ConnectionEvents;

/// What one connection says, for those whom it concerns.
pub(super) struct PushHandler {
    pub(super) link: Link,
    pub(super) listener: Weak<dyn Listener>,
    pub(super) messages_are_hints: bool,
    pub(super) connection: Weak<Connection>,
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) channels: Option<Arc<ClientChannels>>,
    pub(super) foreign: Option<(Arc<ForeignChannels>, Clock)>,
}

impl ConnectionEvents for PushHandler {
    fn on_message(&self, channel: &[u8], payload: &[u8]) {
        self.subscriptions.note_message();
        if self.is_foreign(channel) {
            return;
        }
        if Prefix::is_of_client(channel) {
            // Nothing else comes this way, and no grant.
            if let Some(message) = self.of_client(channel, payload) {
                self.listener.on_message(message);
            }
            return;
        }
        if !Prefix::is_freed(channel) {
            return self.on_granted(payload);
        }
        // Over any connection: it is a hint.
        if let Some(mut ended) = messages::ended(payload) {
            let namespace = Prefix::namespace_of_freed(channel);
            ended.key = ended.key.in_namespace(namespace);
            self.listener.on_freed(ended);
        }
    }

    /// Its slot went to another node. Who waits there finds it.
    fn on_unsubscribed(&self, channel: &[u8]) {
        self.subscriptions.forget_ended(channel);
        self.listener.recheck();
    }

    fn on_late(&self) {
        if let Some(connection) = self.connection.upgrade() {
            connection.doubt(self.link);
        }
    }

    fn on_end(&self, error: &RedisError) {
        if let Some(connection) = self.connection.upgrade() {
            connection.report(self.link, errors::store_error(error));
        }
    }
}

impl PushHandler {
    /// Passes a message of another library on.
    fn is_foreign(&self, channel: &[u8]) -> bool {
        self.foreign.as_ref().is_some_and(|(channels, clock)| {
            channels.on_message(channel, self.link, clock, &self.listener)
        })
    }

    /// What another client says, over any connection.
    fn of_client(&self, channel: &[u8], payload: &[u8]) -> Option<ClientMessage> {
        self.channels.as_ref()?.read(channel, payload)
    }

    fn on_granted(&self, payload: &[u8]) {
        // A message over a connection that was replaced may be older than the replies that count
        // now.
        let current = self.connection.upgrade();
        if current.is_none_or(|connection| connection.link() != self.link) {
            return;
        }
        if let Some((owner, token)) = messages::granted(payload) {
            let trust = match self.messages_are_hints {
                true => Trust::Ask(self.link),
                false => Trust::Order(self.link),
            };
            drop(
                self.listener
                    .on_granted(HandedOver::new(owner, token, trust)),
            );
        }
    }
}
