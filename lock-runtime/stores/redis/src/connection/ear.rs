//! What one connection says on its own.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use lock_store::{Link, Listener, Owner, StoreError, StoreErrorKind};
use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value};

use super::{Channels, Connection, mixed_up};
use crate::cluster::Membership;
use crate::names::Prefix;
use crate::node;

/// What listens to one connection.
pub(super) struct Ear {
    pub(super) link: Link,
    /// Whether a caller's runtime drives it, beside the one of the client's thread.
    pub(super) near: bool,
    pub(super) listener: Weak<dyn Listener>,
    pub(super) connection: Weak<Connection>,
    pub(super) membership: Option<Membership>,
    pub(super) channels: Arc<Channels>,
}

impl Ear {
    /// The settings of the connection that it listens to.
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
            // We never unsubscribe. Told before the redis crate gives it to a command as its reply.
            PushKind::SUnsubscribe | PushKind::Unsubscribe => {
                self.channels.mixed_up.store(true, Ordering::Release);
                self.broken(mixed_up());
            }
            PushKind::Message | PushKind::SMessage => self.message(&push.data),
            _ => {}
        }
    }

    fn broken(&self, error: StoreError) {
        match self.connection.upgrade() {
            Some(connection) if self.near => {
                connection.do_without(self.link, connection.clock.now())
            }
            Some(connection) => connection.report(self.link, error),
            None => {}
        }
    }

    fn message(&self, data: &[Value]) {
        let [Value::BulkString(channel), Value::BulkString(payload), ..] = data else {
            return;
        };
        if !Prefix::is_freed(channel) {
            return self.granted(channel, payload);
        }
        // Of any connection: it is a hint.
        if let (Some(ended), Some(listener)) = (node::ended(payload), self.listener.upgrade()) {
            listener.freed(ended);
        }
    }

    fn granted(&self, channel: &[u8], payload: &[u8]) {
        // A message of a connection that was replaced may be older than replies of the new one; of a node that no longer
        // has the slot, than those of the node that has it.
        let current = self.connection.upgrade();
        let current = current.is_some_and(|connection| connection.is_current(self.link, self.near));
        let member = self.membership.as_ref();
        if !current || !member.is_none_or(|member| member.serves(channel)) {
            return;
        }
        let parsed = std::str::from_utf8(payload).ok().and_then(|text| {
            let (owner, token) = text.split_once(' ')?;
            Some((Owner::parse(owner)?, token.parse().ok()))
        });
        if let (Some((owner, token)), Some(listener)) = (parsed, self.listener.upgrade()) {
            drop(listener.granted(self.link, owner, token));
        }
    }
}
