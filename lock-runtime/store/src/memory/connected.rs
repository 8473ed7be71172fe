//! [`ConnectedClient`]: a client that receives messages from the server.

use std::sync::{Arc, Weak};

use crate::Listener;

/// A connected client.
#[derive(Debug)]
pub(super) struct ConnectedClient {
    /// The client's own namespace.
    pub(super) namespace: Arc<str>,
    pub(super) listener: Weak<dyn Listener>,
}

impl ConnectedClient {
    pub(super) fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.listener.upgrade()
    }
}
