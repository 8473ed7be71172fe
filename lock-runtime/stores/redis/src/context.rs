//! [`ClientContext`]: what all connections of one client share.

use std::sync::{Arc, Weak};

use lock_store::timing::Timeouts;
use lock_store::{Clock, CredentialsProvider, Layout, Listener};

use crate::access::ServerAccess;
use crate::config::Needs;
use crate::connection_login::Asking;
use crate::names::Prefix;
use crate::topology::address_map::AddressMap;
use crate::transport::client_channels::ClientChannels;
use crate::transport::foreign_channels::ForeignChannels;

/// A client's time limits, clock, listener for messages from servers, name at the servers, and
/// access.
#[derive(Clone, Debug)]
pub(crate) struct ClientContext {
    pub(crate) timeouts: Timeouts,
    pub(crate) clock: Clock,
    pub(crate) listener: Weak<dyn Listener>,
    /// Replicas have to confirm what a message of a server says; or in a cluster, where a node
    /// passes messages of its shard on, a former master may have sent it before newer replies.
    pub(crate) messages_are_hints: bool,
    /// Empty for none.
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Prefix,
    /// What each connection must be able to do.
    pub(crate) needs: Needs,
    /// As whose locks it keeps its keys.
    pub(crate) layout: Layout,
    /// The channels on which it hears other clients, unless other connections do that.
    pub(crate) channels: Option<Arc<ClientChannels>>,
    /// The channels of another library on which it waits, in a layout.
    pub(crate) foreign: Option<Arc<ForeignChannels>>,
    pub(crate) access: Arc<ServerAccess>,
    /// Where announced addresses lead from here.
    pub(crate) addresses: AddressMap,
    /// For a client whose URL names no user.
    pub(crate) provider: Option<CredentialsProvider>,
}

impl ClientContext {
    /// The provider of credentials, if there is one.
    pub(crate) fn asking(&self) -> Option<Asking<'_>> {
        let clock = &self.clock;
        let provider = self.provider.as_ref()?;
        Some(Asking { provider, clock })
    }
}
