//! [`Connected`]: a client that the server can tell something.

use std::sync::{Arc, Weak};

use crate::Listener;

/// A client that is connected.
#[derive(Debug)]
pub(super) struct Connected {
    /// Its own.
    pub(super) namespace: Arc<str>,
    pub(super) listener: Weak<dyn Listener>,
}

impl Connected {
    pub(super) fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.listener.upgrade()
    }
}
