//! Redis under test, with locks that are one text each, as old libraries keep them.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{Capabilities, ClientId, Clock, Layout, Listener, Store};
use lock_store_redis::{Settings, open};

use crate::RedisServer;
use crate::{Asks, Backend, StoreUnderTest};
use crate::{PATIENT, context};

/// One server. What needs a queue, tokens or shares is left out.
#[derive(Debug)]
pub struct TextBackend {
    server: RedisServer,
    layout: Layout,
}

impl TextBackend {
    /// A new `redis-server`, and locks whose value is the time of their end.
    pub async fn timestamp() -> Backend {
        Self::start(Layout::Timestamp).await
    }

    /// A new `redis-server`, and locks as ShedLock keeps them.
    pub async fn shedlock() -> Backend {
        Self::start(Layout::ShedLock).await
    }

    async fn start(layout: Layout) -> Backend {
        let server = RedisServer::start().await;
        Backend::new(Self { server, layout })
    }

    /// What the tests go by, of the layout `timestamp`. Its times are in whole milliseconds.
    #[must_use]
    pub fn of_timestamp() -> Capabilities {
        let mut can = Self::of_shedlock();
        can.rounds_up = Duration::from_millis(2);
        can
    }

    /// The same of the layout `shedlock`.
    #[must_use]
    pub fn of_shedlock() -> Capabilities {
        let mut can = Capabilities::none("the layout");
        can.tells = true;
        can
    }

    fn url(&self) -> String {
        match self.layout {
            // All clocks here are the server's.
            Layout::Timestamp => format!("{}?skew=0ms", self.server.url()),
            _ => self.server.url(),
        }
    }
}

impl StoreUnderTest for TextBackend {
    fn builder(&self) -> LockClientBuilder {
        LockClient::builder()
            .url(self.url())
            .layout(self.layout)
            .namespace("lock")
            .command_timeout(Duration::from_secs(3))
            .connect_timeout(Duration::from_secs(10))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let mut context = context("lock", id, listener, clock);
        context.timeouts = PATIENT;
        context.layout = self.layout;
        open(&self.url(), context, Settings::default()).expect("a good URL")
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async { self.server.keys("*").await.len() })
    }

    fn one_redis(&self) -> Option<&RedisServer> {
        Some(&self.server)
    }

    crate::server_faults::server_faults!(server);

    /// None but those on which clients hear each other.
    fn channels(&self) -> Asks<'_, usize> {
        Box::pin(async {
            let channels: Vec<String> = self.server.query(&["PUBSUB", "CHANNELS"]).await;
            let of_locks = |channel: &&String| !channel.contains("%client:");
            channels.iter().filter(of_locks).count()
        })
    }
}
