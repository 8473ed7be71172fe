//! Listening: each client has a channel of its own. What it hears are hints: whoever misses one
//! asks again within a second.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::backoff;
use lock_store::{ClientId, Clock, HandedOver, Listener, Namespace, StoreError, Trust};
use tokio::sync::{oneshot, watch};
use tokio_postgres::{AsyncMessage, Client};

use crate::connection::until_closed;
use crate::link::LINK;
use crate::news::{News, channel};
use crate::transport::{Messages, Route};

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
                    drop(listener.granted(HandedOver::new(owner, token, Trust::Ask(LINK))));
                }
            }
            News::Told { .. } => {
                if let Some(message) = news.message_for(&self.namespace) {
                    listener.told(message);
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

    fn engine(&self, tell: impl FnOnce(&Arc<dyn Listener>)) {
        if let Some(listener) = self.listener.upgrade() {
            tell(&listener);
        }
    }
}

/// Listens until `closed` is dropped, over connections of its own. `listens` says whether it does.
pub(crate) fn start(
    route: Route,
    client: ClientId,
    hearer: Hearer,
    clock: &Clock,
    limit: Duration,
    listens: watch::Sender<bool>,
    closed: oneshot::Receiver<()>,
) {
    let task_clock = clock.clone();
    clock.spawn(until_closed(closed, async move {
        let mut failures = 0;
        loop {
            let connected = task_clock
                .by(task_clock.now() + limit, route.connect())
                .await;
            let was_heard = match connected {
                Some(Ok((session, messages))) => {
                    let listening = Listening { session, messages };
                    listening
                        .run(client, &hearer, &task_clock, limit, &listens)
                        .await
                }
                _ => {
                    tracing::debug!(
                        "no connection to listen on; waiting requests ask again each second"
                    );
                    false
                }
            };
            listens.send_replace(false);
            failures = if was_heard { 1 } else { failures + 1 };
            let until = task_clock.now() + backoff(failures);
            task_clock.sleep_until(until).await;
        }
    }));
}

/// A connection to listen on.
struct Listening {
    session: Client,
    messages: Messages,
}

impl Listening {
    /// True if it did listen for a while.
    async fn run(
        mut self,
        client: ClientId,
        hearer: &Hearer,
        clock: &Clock,
        limit: Duration,
        listens: &watch::Sender<bool>,
    ) -> bool {
        let heard = async {
            while let Some(message) = self.messages.next().await {
                if let AsyncMessage::Notification(message) = message
                    && let Some(news) = News::read(message.payload())
                {
                    hearer.hear(news);
                }
            }
        };
        let subscribed = async {
            let command = format!("LISTEN {}", channel(client));
            let begun = clock.by(clock.now() + limit, self.session.batch_execute(&command));
            let is_begun = matches!(begun.await, Some(Ok(())));
            if is_begun {
                listens.send_replace(true);
                // What was sent before was missed.
                hearer.engine(|listener| listener.recheck());
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = heard => {}
            () = subscribed => {}
        }
        *listens.borrow()
    }
}
