//! [`Hearer`]: brings what is heard to the client's engine. These are hints: whoever misses one
//! asks again within a second.

use std::sync::Weak;

use lock_store::{HandedOver, Listener, Namespace, Trust};

use crate::news::News;
use crate::statement::LINK;

/// Brings news to the client's engine.
#[derive(Clone, Debug)]
pub(crate) struct Hearer {
    pub(crate) listener: Weak<dyn Listener>,
    pub(crate) namespace: Namespace,
}

impl Hearer {
    pub(crate) fn hear(&self, news: News) {
        match news {
            News::Granted(grants) => {
                for (owner, token) in grants {
                    drop(
                        self.listener
                            .on_granted(HandedOver::new(owner, token, Trust::Ask(LINK))),
                    );
                }
            }
            News::Told { .. } => {
                if let Some(message) = news.message_for(&self.namespace) {
                    self.listener.on_message(message);
                }
            }
        }
    }
}
