//! Redis under test, with locks as Redisson keeps them.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{
    Ability, Capabilities, ClientId, Clock, Instant, Layout, Listener, Store, StoreContext,
    StoreFuture,
};
use lock_store_redis::{Settings, open};

use crate::RedisServer;
use crate::store_decorator::{Interceptor, Reply, Request, decorated};
use crate::{Asks, Backend, StoreUnderTest};
use crate::{PATIENT, context};

/// One server. Behaviours that depend on a queue which hands locks over are left out, and those of
/// semaphores, whose limit another program would have to set.
#[derive(Debug)]
pub struct RedissonBackend(RedisServer);

impl RedissonBackend {
    /// A new `redis-server`.
    pub async fn start() -> Backend {
        Backend::new(Self(RedisServer::start().await))
    }

    /// What the tests go by.
    #[must_use]
    pub fn capabilities() -> Capabilities {
        let mut can = Capabilities::all();
        let lacks = || Ability::no("not tried here");
        (can.rate, can.exact_rate, can.latch) = (lacks(), lacks(), lacks());
        (can.shares, can.fair) = (lacks(), lacks());
        can.token_window = false;
        can
    }
}

fn opened(url: &str, mut context: StoreContext) -> Result<Arc<dyn Store>, lock_store::ConfigError> {
    context.layout = Layout::Redisson;
    let store = open(url, context, Settings::default())?;
    Ok(decorated(store, Arc::new(Exclusive)))
}

/// Says that a store has exclusive locks only.
#[derive(Debug)]
struct Exclusive;

impl Interceptor for Exclusive {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        request.send(store, by)
    }

    fn capabilities(&self, own: Capabilities) -> Capabilities {
        let mut can = own;
        let known = RedissonBackend::capabilities();
        (can.shares, can.fair) = (known.shares, known.fair);
        can
    }
}

impl StoreUnderTest for RedissonBackend {
    fn builder(&self) -> LockClientBuilder {
        let url = self.0.url();
        LockClient::builder()
            .store(move |context| opened(&url, context))
            .command_timeout(Duration::from_secs(3))
            .connect_timeout(Duration::from_secs(10))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let mut context = context("lock", id, listener, clock);
        context.timeouts = PATIENT;
        opened(&self.0.url(), context).expect("a good URL")
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async {
            let keys = self.0.keys("*").await;
            let counts = |key: &&String| !key.contains("redisson_lock_token");
            keys.iter().filter(counts).count()
        })
    }

    fn one_redis(&self) -> Option<&RedisServer> {
        Some(&self.0)
    }

    crate::server_faults::server_faults!(0);

    fn channels(&self) -> Asks<'_, usize> {
        Box::pin(async {
            let channels = self.0.channels().await;
            let of_locks = |channel: &&String| channel.starts_with("redisson_");
            channels.iter().filter(of_locks).count()
        })
    }
}
