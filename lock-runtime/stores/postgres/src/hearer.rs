//! [`Hearer`]: brings what is heard to the client's engine. These are hints: whoever misses one
//! asks again within a second.

use std::fmt;
use std::sync::{Arc, Weak};

use lock_store::{HandedOver, Listener, Namespace, StoreError, Trust};

use crate::news::News;
use crate::statement::LINK;

/// Brings news to the client's engine.
#[derive(Clone)]
pub(crate) struct Hearer {
    pub(crate) listener: Weak<dyn Listener>,
    pub(crate) namespace: Namespace,
}

impl fmt::Debug for Hearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hearer").field(&self.namespace).finish()
    }
}

impl Hearer {
    pub(crate) fn hear(&self, news: News) {
        let Some(listener) = self.listener.upgrade() else {
            return;
        };
        match news {
            News::Granted(grants) => {
                for (owner, token) in grants {
                    drop(listener.on_granted(HandedOver::new(owner, token, Trust::Ask(LINK))));
                }
            }
            News::Told { .. } => {
                if let Some(message) = news.message_for(&self.namespace) {
                    listener.on_message(message);
                }
            }
        }
    }

    pub(crate) fn connected(&self, server: &str) {
        self.engine(|listener| listener.connected(server));
    }

    pub(crate) fn disconnected(&self, server: &str, error: &StoreError) {
        self.engine(|listener| listener.disconnected(server, error));
    }

    /// What was sent before was missed.
    pub(crate) fn recheck(&self) {
        self.engine(|listener| listener.recheck());
    }

    fn engine(&self, tell: impl FnOnce(&Arc<dyn Listener>)) {
        if let Some(listener) = self.listener.upgrade() {
            tell(&listener);
        }
    }
}
