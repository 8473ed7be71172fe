//! A place in the queue that a late command takes for a request that is over. The model in `models/queue.rs` found it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, LockKey, StoreError};
use lock_store::Pause;
use lock_store::memory::MemoryStore;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Claim, Failure, Fenced, Inspection, LatchRequest, Latched,
    Link, RateRequest, Rated, Release, Released, Renewal, Renewed, Store, StoreFuture,
};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// A connection that stalls: its third acquire gets no answer, and is carried out before the release, which waits.
#[derive(Debug)]
struct Stalled {
    store: Arc<dyn Store>,
    error: StoreError,
    acquires: AtomicU32,
    held_up: Mutex<Option<Acquire>>,
    resume: Arc<Notify>,
}

impl Stalled {
    fn no_answer<T: Send + 'static>(&self, by: Instant) -> StoreFuture<'_, T> {
        let failure = Failure {
            error: self.error.clone(),
            unknown: Some(self.link()),
        };
        Box::pin(async move {
            tokio::time::sleep_until(by.into()).await;
            Err(failure)
        })
    }
}

impl Store for Stalled {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        if self.acquires.fetch_add(1, Ordering::SeqCst) + 1 == 3 {
            let mut held_up = self.held_up.lock().unwrap_or_else(PoisonError::into_inner);
            *held_up = Some(request);
            return self.no_answer(by);
        }
        self.store.acquire(request, by)
    }

    fn renew(&self, _: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        self.no_answer(by)
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        Box::pin(async move {
            self.resume.notified().await;
            let late = self
                .held_up
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(late) = late {
                let answer = self.store.acquire(late, by).await?;
                assert!(matches!(answer.value, Acquired::Busy { queued: true, .. }));
            }
            self.store.release(requests, by).await
        })
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        self.store.acquire_all(requests, by)
    }
    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        self.store.fence(claim, by)
    }
    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        self.store.shrink(claim, permits, by)
    }
    fn resize(&self, key: LockKey, of: u32, by: Instant) -> StoreFuture<'_, bool> {
        self.store.resize(key, of, by)
    }
    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        self.store.abandon(request, by)
    }
    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        self.store.inspect(key, by)
    }
    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        self.store.force_release(key, by)
    }
    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        self.store.rate(request, by)
    }
    fn latch(&self, request: LatchRequest, by: Instant) -> StoreFuture<'_, Latched> {
        self.store.latch(request, by)
    }
    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        self.store.ping(by)
    }
    fn link(&self) -> Link {
        self.store.link()
    }
    fn close(&self) {
        self.store.close();
    }
    fn is_closed(&self) -> bool {
        self.store.is_closed()
    }
}

/// The error of a store that isn't there.
async fn unreachable() -> StoreError {
    let builder = LockClient::builder().url("redis://127.0.0.1:1/");
    match builder.connect().await {
        Err(LockError::Unavailable { source, .. }) => source,
        other => panic!("something answered: {other:?}"),
    }
}

#[test]
fn a_lost_hold_leaves_no_place_that_a_late_look_took() {
    let real = tokio::runtime::Runtime::new().unwrap();
    let error = real.block_on(unreachable());
    let paused = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    paused.block_on(scenario(error));
}

async fn scenario(error: StoreError) {
    let (server, resume) = (MemoryStore::new(), Arc::new(Notify::new()));
    let plain = server.clone();
    let other = LockClient::builder()
        .store(move |namespace, id, listener, clock| plain.connect(namespace, id, listener, clock))
        .simulated(Handle::current(), 1, Pause::default())
        .connect()
        .await
        .unwrap();
    let go = Arc::clone(&resume);
    let stalled = LockClient::builder()
        .command_timeout(Duration::from_millis(100))
        .store(move |namespace, id, listener, clock| {
            Arc::new(Stalled {
                store: server.connect(namespace, id, listener, clock),
                error: error.clone(),
                acquires: AtomicU32::new(0),
                held_up: Mutex::new(None),
                resume: Arc::clone(&go),
            })
        })
        .simulated(Handle::current(), 2, Pause::default())
        .connect()
        .await
        .unwrap();

    let first = other.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(stalled.lock("k").acquire());
    // It looks again after a second, hears nothing, and is told of the hand-over meanwhile.
    tokio::time::sleep(Duration::from_millis(1050)).await;
    first.release().await.unwrap();
    let lost = waiting.await.unwrap().unwrap();
    lost.lost().await;
    drop(lost);
    let second = other.lock("k").acquire().await.unwrap();
    resume.notify_one();
    for tries in 0.. {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if other.inspect("k").await.unwrap().waiting == 0 && tries > 2 {
            break;
        }
        assert!(tries < 50, "a place is left in the queue");
    }
    second.release().await.unwrap();
    assert!(other.inspect("k").await.unwrap().holder.is_none());
}
