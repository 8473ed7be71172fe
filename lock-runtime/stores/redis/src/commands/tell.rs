//! `PUBLISH`: messages from this client to another.

use lock_store::{ClientId, ClientMessage, Instant, LockKey, StoreError};

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
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.namespace.of_client(key, to));
        publish.arg(Written(message).to_string());
        let reply = self.call::<i64>(key, by, &Request::command(publish)).await;
        let reply = reply.map_err(|failure| failure.error)?;
        Ok(reply.value.is_ok_and(|heard| heard > 0))
    }

    /// Makes the client hear others in a view's namespace, at the view's first use.
    pub(crate) fn uses(&self, key: &LockKey) {
        if let Some(channel) = self.first_of_view(key) {
            self.servers.hear(&channel);
        }
    }

    /// The channel of a view that was not used before.
    pub(crate) fn first_of_view(&self, key: &LockKey) -> Option<String> {
        self.channels_of_client.as_ref()?.first_of_view(key)
    }
}
