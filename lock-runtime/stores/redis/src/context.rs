//! [`ClientContext`]: what all connections of one client share.

use std::sync::{Arc, Weak};

use lock_store::timing::Timeouts;
use lock_store::{Clock, Listener};

use crate::access::Access;
use crate::credentials::{Asking, CredentialsProvider};
use crate::transport::client_channels::ClientChannels;

/// A client's time limits, its clock, its listener for what the servers tell on their own, its name
/// there, and how it gets in.
#[derive(Clone, Debug)]
pub(crate) struct ClientContext {
    pub(crate) timeouts: Timeouts,
    pub(crate) clock: Clock,
    pub(crate) listener: Weak<dyn Listener>,
    /// Empty for none.
    pub(crate) name: Arc<str>,
    /// Where it hears other clients, unless that is done over other connections.
    pub(crate) channels: Option<Arc<ClientChannels>>,
    pub(crate) access: Arc<Access>,
    /// If the URL does not say who the client is.
    pub(crate) provider: Option<CredentialsProvider>,
}

impl ClientContext {
    /// Whom to ask for credentials.
    pub(crate) fn asking(&self) -> Option<Asking<'_>> {
        let clock = &self.clock;
        let provider = self.provider.as_ref()?;
        Some(Asking { provider, clock })
    }
}
