//! A late command takes a place in the queue for a request that is over. The model in
//! `models/queue.rs` found this fault.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_runtime::LockClient;
use lock_store::SimulatedStop;
use lock_store::memory::MemoryStore;
use lock_store::{Acquire, Acquired, Busy, Instant, Store, StoreFuture};
use lock_testkit_core::store_decorator::{Interceptor, Reply, Request, decorated, silence};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// A connection that stalls. Its third acquire gets no answer. It is carried out before the
/// release, which waits.
#[derive(Debug, Default)]
struct Stalled {
    acquires: AtomicU32,
    held_up: Mutex<Option<Acquire>>,
    resume: Notify,
}

impl Interceptor for Stalled {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        match request {
            Request::Acquire(request) if self.acquires.fetch_add(1, Ordering::SeqCst) + 1 == 3 => {
                *self.held_up.lock().unwrap() = Some(request);
                silence(by, Some(store.link()))
            }
            Request::Renew(_) => silence(by, Some(store.link())),
            Request::Release(_) => Box::pin(async move {
                self.resume.notified().await;
                let late = self.held_up.lock().unwrap().take();
                if let Some(late) = late {
                    let answer = store.acquire(late, by).await?;
                    assert!(matches!(
                        answer.value,
                        Acquired::Busy(Busy { queued: true, .. })
                    ));
                }
                request.send(store, by).await
            }),
            request => request.send(store, by),
        }
    }
}

#[test]
fn a_lost_hold_leaves_no_place_that_a_late_look_took() {
    let paused = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    paused.block_on(scenario());
}

async fn scenario() {
    let (server, trouble) = (MemoryStore::new(), Arc::new(Stalled::default()));
    let plain = server.clone();
    let other = LockClient::builder()
        .store(move |context| Ok(plain.connect(context)))
        .simulated(Handle::current(), 1, SimulatedStop::default())
        .connect()
        .await
        .unwrap();
    let interceptor = Arc::clone(&trouble);
    let stalled = LockClient::builder()
        .command_timeout(Duration::from_millis(100))
        .store(move |context| Ok(decorated(server.connect(context), Arc::clone(&interceptor))))
        .simulated(Handle::current(), 2, SimulatedStop::default())
        .connect()
        .await
        .unwrap();

    let first = other.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(stalled.lock("k").acquire());
    // The request looks again after a second and hears nothing. Meanwhile it is told of the
    // hand-over.
    tokio::time::sleep(Duration::from_millis(1050)).await;
    first.release().await.unwrap();
    let lost = waiting.await.unwrap().unwrap();
    lost.lost().await;
    drop(lost);
    let second = other.lock("k").acquire().await.unwrap();
    trouble.resume.notify_one();
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
