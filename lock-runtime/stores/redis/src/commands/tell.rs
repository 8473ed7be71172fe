//! `PUBLISH`: messages from this client to another.

use lock_store::{ClientId, ClientMessage, Instant, LockKey, Namespace, StoreError};

use crate::resp::Command;
use crate::store::RedisStore;
use crate::transport::messages::Written;
use crate::transport::request::Request;

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

    /// Makes the client hear others in a view's namespace, as long as the view is used.
    pub(crate) fn hear_view(&self, key: &LockKey) {
        if let Some(channel) = self.use_view(key) {
            self.servers.hear(&channel);
        }
    }

    /// The channel of a view that was not in use.
    pub(crate) fn use_view(&self, key: &LockKey) -> Option<String> {
        self.channels_of_client.as_ref()?.use_view(key)
    }

    /// Ends the subscriptions of views that are not used any more. True if some are left.
    pub(crate) fn forget_unused_views(&self, has_any: &dyn Fn(&Namespace) -> bool) -> bool {
        let Some(channels) = &self.channels_of_client else {
            return false;
        };
        let unused = channels.take_unused(has_any);
        if !unused.is_empty() {
            self.servers.forget(&unused);
        }
        channels.has_views()
    }
}
