//! [`PushHandler`]: what one connection says on its own.

use std::sync::{Arc, Weak};

use lock_store::{ClientMessage, HandedOver, Link, Listener, StoreError, StoreErrorKind, Trust};
use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value};

use super::client_channels::ClientChannels;
use super::connection::Connection;
use super::messages;
use super::subscribe::Subscriptions;
use crate::names::Prefix;

/// In a cluster: whether the node of a connection is the only one that can have granted the locks
/// of a channel. Otherwise a message of one node may be older than a reply of another.
pub(crate) type Believes = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Hears one connection.
pub(super) struct PushHandler {
    pub(super) link: Link,
    /// Whether a caller's runtime drives it, beside the one of the client's thread.
    pub(super) of_runtime: bool,
    pub(super) listener: Weak<dyn Listener>,
    pub(super) messages_are_hints: bool,
    pub(super) connection: Weak<Connection>,
    pub(super) believes: Option<Believes>,
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) channels: Option<Arc<ClientChannels>>,
}

impl PushHandler {
    /// The settings of the connection that it hears.
    pub(super) fn config(self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| -> Result<(), redis::aio::SendError> {
                self.hear(push);
                Ok(())
            })
    }

    /// A push message of the server, or the redis crate's word that the connection is gone.
    fn hear(&self, push: PushInfo) {
        match push.kind {
            PushKind::Disconnection => self.broken(StoreError::new(
                StoreErrorKind::Disconnected,
                "the connection was closed",
            )),
            // This is told before the redis crate gives it to a command as its reply.
            PushKind::SUnsubscribe | PushKind::Unsubscribe
                if !self.has_asked_for_end(&push.data) =>
            {
                self.broken(self.subscriptions.mix_up());
            }
            PushKind::Message | PushKind::SMessage => {
                self.subscriptions.note_message();
                self.message(&push.data);
            }
            _ => {}
        }
    }

    fn has_asked_for_end(&self, data: &[Value]) -> bool {
        match data {
            [Value::BulkString(channel), ..] => self.subscriptions.has_asked_for_end(channel),
            _ => false,
        }
    }

    fn broken(&self, error: StoreError) {
        match self.connection.upgrade() {
            Some(connection) if self.of_runtime => {
                connection.do_without(self.link, connection.context.clock.now());
            }
            Some(connection) => connection.report(self.link, error),
            None => {}
        }
    }

    fn message(&self, data: &[Value]) {
        let [Value::BulkString(channel), Value::BulkString(payload), ..] = data else {
            return;
        };
        if Prefix::is_of_client(channel) {
            // Nothing else comes this way, and no grant.
            let message = self.of_client(channel, payload);
            if let (Some(message), Some(listener)) = (message, self.listener.upgrade()) {
                listener.told(message);
            }
            return;
        }
        if !Prefix::is_freed(channel) {
            return self.granted(channel, payload);
        }
        // Over any connection: it is a hint.
        let heard = (messages::ended(payload), self.listener.upgrade());
        if let (Some(mut ended), Some(listener)) = heard {
            let namespace = Prefix::namespace_of_freed(channel);
            ended.key = ended.key.in_namespace(namespace);
            listener.freed(ended);
        }
    }

    /// What another client says, over any connection.
    fn of_client(&self, channel: &[u8], payload: &[u8]) -> Option<ClientMessage> {
        self.channels.as_ref()?.read(channel, payload)
    }

    fn granted(&self, channel: &[u8], payload: &[u8]) {
        // A message of a connection that was replaced may be older than replies of the new one; a
        // message of a node that no longer has the slot, than replies of the node that has it.
        let current = self.connection.upgrade();
        let current =
            current.is_some_and(|connection| connection.is_current(self.link, self.of_runtime));
        let believed = || self.believes.as_ref().is_none_or(|it| it(channel));
        if !current || !believed() {
            return;
        }
        let granted = (messages::granted(payload), self.listener.upgrade());
        if let (Some((owner, token)), Some(listener)) = granted {
            let trust = match self.messages_are_hints {
                true => Trust::Ask(self.link),
                false => Trust::Order(self.link),
            };
            drop(listener.granted(HandedOver::new(owner, token, trust)));
        }
    }
}
