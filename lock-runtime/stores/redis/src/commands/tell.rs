//! `PUBLISH`: messages from this client to another.

use std::borrow::Borrow;
use std::slice;

use lock_store::{ClientId, ClientMessage, Instant, LockKey, Namespace, StoreError};

use crate::resp::Command;
use crate::store::RedisStore;
use crate::transport::client_channels::ClientChannels;
use crate::transport::messages::Written;
use crate::transport::script_or_command::Request;

impl RedisStore {
    /// Sends a message through the server that has its key. Returns true if a client heard it
    /// there.
    pub(crate) async fn tell_client(
        &self,
        to: ClientId,
        message: &ClientMessage,
        by: Instant,
    ) -> Result<bool, StoreError> {
        let key = message.key();
        let mut publish = Command::new("PUBLISH");
        publish.arg(self.namespace.of_client(key, to));
        publish.arg(Written(message).to_string());
        let reply = self.call::<i64>(key, by, &Request::command(publish)).await;
        let reply = reply.map_err(|failure| failure.error)?;
        Ok(reply.value.is_ok_and(|heard| heard > 0))
    }

    pub(crate) fn subscribe_view(&self, key: &LockKey) {
        subscribe_view(slice::from_ref(self), key);
    }
}

/// Makes the client hear others in a view's namespace, over all of these servers, as long as the
/// view is used. The servers of a client share the list of channels.
pub(crate) fn subscribe_view(servers: &[impl Borrow<RedisStore>], key: &LockKey) {
    if let Some(channels) = channels(servers)
        && let Some(channel) = channels.use_view(key)
    {
        let each = servers.iter();
        each.for_each(|one| one.borrow().servers.subscribe(&channel));
    }
}

/// Ends the subscriptions of views that are not used any more. True if some are left.
pub(crate) fn forget_unused_views(
    servers: &[impl Borrow<RedisStore>],
    has_any: &dyn Fn(&Namespace) -> bool,
) -> bool {
    let Some(channels) = channels(servers) else {
        return false;
    };
    let unused = channels.take_unused(has_any);
    if !unused.is_empty() {
        let each = servers.iter();
        each.for_each(|one| one.borrow().servers.unsubscribe(&unused));
    }
    channels.has_views()
}

fn channels(servers: &[impl Borrow<RedisStore>]) -> Option<&ClientChannels> {
    servers.first()?.borrow().channels_of_client.as_deref()
}
