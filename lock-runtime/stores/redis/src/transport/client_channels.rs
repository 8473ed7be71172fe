//! [`ClientChannels`]: where a client hears other clients.

use std::collections::BTreeSet;

use lock_store::{ClientId, ClientMessage, LockKey, Mutex};

use super::messages;
use crate::names::Prefix;

/// So many namespaces of views are listened on: beyond that, a client is not known by name there.
const MOST_VIEWS: usize = 1024;

/// The channels of one client: one in its own namespace, and one for each view that it has used.
#[derive(Debug)]
pub(crate) struct ClientChannels {
    prefix: Prefix,
    client: ClientId,
    /// Those of views.
    views: Mutex<BTreeSet<String>>,
}

impl ClientChannels {
    pub(crate) fn new(prefix: Prefix, client: ClientId) -> Self {
        Self {
            prefix,
            client,
            views: Mutex::default(),
        }
    }

    /// All of them. Each new connection of the client's own thread listens there.
    pub(super) fn all(&self) -> Vec<String> {
        let mut all = vec![self.prefix.own_channel(self.client)];
        all.extend(self.views.lock().iter().cloned());
        all
    }

    /// The channel of a view at its first use.
    pub(crate) fn first_of_view(&self, key: &LockKey) -> Option<String> {
        key.namespace()?;
        let channel = self.prefix.of_client(key, self.client);
        let mut views = self.views.lock();
        let is_new = views.len() < MOST_VIEWS && views.insert(channel.clone());
        is_new.then_some(channel)
    }

    /// What another client says on this channel; `None` if it is no such channel or message.
    pub(super) fn read(&self, channel: &[u8], payload: &[u8]) -> Option<ClientMessage> {
        let namespace = Prefix::namespace_of_client(channel)?;
        let message = messages::between_clients(payload)?;
        let key = message.key().clone().in_namespace(Some(namespace));
        Some(message.about(self.prefix.own(key)))
    }
}
