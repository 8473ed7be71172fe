//! [`StoreContext`]: what a client gives to the store that it opens.

use std::sync::{Arc, Weak};

use crate::clock::Clock;
use crate::layout::Layout;
use crate::listener::Listener;
use crate::namespace::Namespace;
use crate::owner::ClientId;
use crate::timing::Timeouts;

/// What a client gives to the store that it opens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreContext {
    /// What each of the client's keys and channels begins with, unless a key
    /// [says otherwise](crate::LockKey::namespace).
    pub namespace: Namespace,
    /// The client in its owner tokens, and where messages for it go.
    pub client: ClientId,
    /// Hears what the store has to say. It is gone when the client is.
    pub listener: Weak<dyn Listener>,
    /// The client's clock, and the runtime of the client's own thread: what the store does in the
    /// background belongs there.
    pub clock: Clock,
    /// Who the client says that it is, for the server's list of clients.
    pub name: Arc<str>,
    /// The client's time limits.
    pub timeouts: Timeouts,
    /// As whose locks it keeps its keys.
    pub layout: Layout,
}

impl StoreContext {
    /// Of a client without a name, with the default time limits and this library's own layout.
    #[must_use]
    pub fn new(
        namespace: Namespace,
        client: ClientId,
        listener: &Arc<dyn Listener>,
        clock: Clock,
    ) -> Self {
        Self {
            namespace,
            client,
            listener: Arc::downgrade(listener),
            clock,
            name: Arc::default(),
            timeouts: Timeouts::default(),
            layout: Layout::Native,
        }
    }
}
