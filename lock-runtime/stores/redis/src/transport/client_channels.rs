//! [`ClientChannels`]: where a client hears other clients.

use std::collections::HashMap;

use lock_store::{ClientId, ClientMessage, LockKey, Mutex, Namespace};

use super::messages;
use crate::names::Prefix;

/// At most this many namespaces of views are listened on. Beyond, the client is not known by name
/// there.
const MOST_VIEWS: usize = 1024;

/// The channels of one client: one in its own namespace, and one for each view that it uses.
#[derive(Debug)]
pub(crate) struct ClientChannels {
    prefix: Prefix,
    client: ClientId,
    /// The namespaces of views, and whether each was used since it was last asked for.
    views: Mutex<HashMap<Namespace, bool>>,
}

impl ClientChannels {
    pub(crate) fn new(prefix: Prefix, client: ClientId) -> Self {
        Self {
            prefix,
            client,
            views: Mutex::default(),
        }
    }

    fn of_view(&self, namespace: &Namespace) -> String {
        self.prefix.channel_of_client(namespace, self.client)
    }

    /// All of them. Each new connection of the client's own thread listens there.
    pub(super) fn all(&self) -> Vec<String> {
        let mut all = vec![self.prefix.own_channel(self.client)];
        let views = self.views.lock();
        all.extend(views.keys().map(|namespace| self.of_view(namespace)));
        all
    }

    /// Whether it is the client's own, or that of a view that is in use.
    pub(super) fn has(&self, channel: &str) -> bool {
        if channel == self.prefix.own_channel(self.client) {
            return true;
        }
        let namespace = self.prefix.namespace_of_client(channel.as_bytes());
        namespace.is_some_and(|namespace| self.views.lock().contains_key(&namespace))
    }

    /// Whether the client may wait on this channel: that of a view that is in use.
    pub(super) fn may_wait_on(&self, channel: &str) -> bool {
        let namespace = Prefix::namespace_of_waiting(channel);
        namespace.is_some_and(|namespace| self.views.lock().contains_key(&namespace))
    }

    /// Notes that a view is used. Its channel, if it was not in use.
    pub(crate) fn use_view(&self, key: &LockKey) -> Option<String> {
        let namespace = key.namespace()?;
        let mut views = self.views.lock();
        if let Some(is_used) = views.get_mut(namespace) {
            *is_used = true;
            return None;
        }
        // In its own, it listens anyway, and must not stop when the view is not used any more.
        if views.len() >= MOST_VIEWS
            || self.of_view(namespace) == self.prefix.own_channel(self.client)
        {
            return None;
        }
        views.insert(namespace.clone(), true);
        Some(self.of_view(namespace))
    }

    /// Removes the views that were not used since the last call and have nothing. Their channels.
    pub(crate) fn take_unused(&self, has_any: &dyn Fn(&Namespace) -> bool) -> Vec<String> {
        let mut views = self.views.lock();
        let unused =
            views.extract_if(|namespace, is_used| !std::mem::take(is_used) && !has_any(namespace));
        unused
            .map(|(namespace, _)| self.of_view(&namespace))
            .collect()
    }

    pub(crate) fn has_views(&self) -> bool {
        !self.views.lock().is_empty()
    }

    /// What another client says on this channel; `None` if it is no such channel or message.
    pub(super) fn read(&self, channel: &[u8], payload: &[u8]) -> Option<ClientMessage> {
        let namespace = self.prefix.namespace_of_client(channel)?;
        let message = messages::between_clients(payload)?;
        let key = message.key().clone().in_namespace(Some(namespace));
        Some(message.about(self.prefix.own(key)))
    }
}
