//! A store under test, as the behaviours of the contract see it.

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{Capabilities, ClientId, Clock, Listener, Store};
use tokio::runtime::Handle;

use crate::{Heard, RedisServer};

/// What a test asks of a store. It may take time.
pub type Asks<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// One store, shared by any number of clients. It ends when the last handle to it is dropped.
pub trait StoreUnderTest: fmt::Debug + Send + Sync + 'static {
    /// A builder for one more client of this store, in the namespace `lock`.
    fn builder(&self) -> LockClientBuilder;

    /// The store of one more client in the namespace `lock`, without a client around it.
    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store>;

    /// The number of locks, latches and places in queues in the store. Fence counters and
    /// remembered calls, which stay for a while, do not count.
    fn leftovers(&self) -> Asks<'_, usize>;

    /// Whether [`leftovers`](Self::leftovers) counts all places of a latch as one.
    fn counts_latch_places_once(&self) -> bool {
        false
    }

    /// Whether it tells the rest of the lease of another client's hold.
    fn tells_rest(&self) -> bool {
        true
    }

    /// Whether a free key can be taken before those who wait for it. If not, the first of them
    /// holds it as soon as it is free.
    fn can_barge(&self) -> bool {
        true
    }

    /// Whether it subscribes in the background, and has its client look again once it hears.
    fn subscribes_later(&self) -> bool {
        false
    }

    /// How many times as long a lease lasts that a busy machine is to renew in time. Servers that
    /// take much of a processor themselves stand still for longer.
    fn patience(&self) -> u32 {
        1
    }

    /// The server stands still: connections stay open, and nothing is answered. False: it can't be
    /// paused, or has no server.
    fn pause(&self) -> bool {
        false
    }

    /// The server goes on, and carries out what it was sent meanwhile.
    fn resume(&self) {}

    /// The server crashes. False: it can't be killed, or has no server.
    fn kill(&self) -> bool {
        false
    }

    /// Starts a server that was killed again, at the same address. Returns when it listens.
    fn restart(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {})
    }

    /// Empties it for the next test, when all clients are gone. False: it can't be emptied, and the
    /// next test gets another.
    fn is_emptied(&self) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        Box::pin(async { false })
    }

    /// The number of channels on which clients hear of their locks. Zero for a store without
    /// channels.
    fn channels(&self) -> Asks<'_, usize> {
        Box::pin(async { 0 })
    }

    /// The Redis server, if it is one and no more.
    fn one_redis(&self) -> Option<&RedisServer> {
        None
    }

    /// The Redis server that has this name and can show what is stored there, if there is one.
    fn server_of<'s>(&'s self, _name: &'s str) -> Asks<'s, Option<&'s RedisServer>> {
        Box::pin(async { None })
    }
}

/// A handle to a store under test.
#[derive(Clone, Debug)]
pub struct Backend(Arc<dyn StoreUnderTest>);

impl Backend {
    /// The handle to this store.
    pub fn new(store: impl StoreUnderTest) -> Self {
        Self(Arc::new(store))
    }

    /// One more client, with the default settings.
    pub async fn client(&self) -> LockClient {
        self.builder().connect().await.expect("the store is up")
    }

    /// What the store says that it can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let listener: Arc<dyn Listener> = Arc::new(Heard::default());
        let clock = Clock::new(Handle::current());
        let store = self.store(ClientId(u128::MAX), &listener, clock);
        let can = store.capabilities();
        store.close();
        can
    }

    /// Checks what is told of the rest of another client's lease. A store may tell nothing if it
    /// [says so](StoreUnderTest::tells_rest).
    ///
    /// # Panics
    /// If it is wrong.
    pub fn check_rest(&self, rest: Option<Duration>, is_right: impl Fn(Duration) -> bool) {
        let right = rest.map_or(!self.tells_rest(), is_right);
        assert!(right, "the rest of the lease: {rest:?}");
    }

    /// A lease that is renewed here in time, where other stores renew this one.
    #[must_use]
    pub fn renewable(&self, lease: Duration) -> Duration {
        lease * self.patience()
    }

    /// Waits until the store is empty.
    pub async fn until_empty(&self) {
        crate::eventually("the store is empty", async || self.leftovers().await == 0).await;
    }
}

impl Deref for Backend {
    type Target = dyn StoreUnderTest;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
