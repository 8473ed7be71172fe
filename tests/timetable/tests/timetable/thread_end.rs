//! What is waited for when the last of a client is dropped. Not in simulated time: there the client
//! has no thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lock_runtime::{Guard, LockClient};
use lock_store::memory::MemoryStore;
use lock_store::{Instant, Store, StoreFuture};
use lock_testkit_core::store_decorator::{Interceptor, Reply, Request, decorated};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

/// A store that is slow to carry out releases.
#[derive(Debug, Default)]
struct Slow {
    /// Its second release comes after the end of this one.
    after: Option<Arc<Slow>>,
    released: AtomicUsize,
    is_closed: AtomicBool,
}

impl Slow {
    fn released(&self) -> usize {
        self.released.load(Ordering::SeqCst)
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

impl Interceptor for Slow {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        Box::pin(async move {
            let releases = matches!(request, Request::Release(_));
            if releases {
                let after = self.after.as_ref().filter(|_| self.released() > 0);
                while after.is_some_and(|other| !other.is_closed()) {
                    yield_now().await;
                }
                for _ in 0..10_000 {
                    yield_now().await;
                }
            }
            let reply = request.send(store, by).await;
            self.released.fetch_add(releases.into(), Ordering::SeqCst);
            reply
        })
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// A client with a thread, and its hold.
async fn holds(store: &Arc<Slow>) -> (LockClient, Guard) {
    let behind = Arc::clone(store);
    let builder = LockClient::builder().store(move |context| {
        let memory = MemoryStore::new().connect(context);
        Ok(decorated(memory, Arc::clone(&behind)))
    });
    // The end is waited for as long.
    let builder = builder.command_timeout(Duration::from_secs(60));
    let client = builder.connect().await.unwrap();
    let lock = client.lock("k").lease(Duration::from_secs(600));
    drop(lock.clone().acquire().await.unwrap());
    // When it has released, all of its thread's tasks have begun.
    while store.released() == 0 {
        yield_now().await;
    }
    let guard = lock.acquire().await.unwrap();
    (client, guard)
}

/// A program that ends right after it would leave the lock to its lease.
#[test]
fn a_client_that_is_dropped_outside_of_an_executor_waits_for_its_release() {
    let store = Arc::new(Slow::default());
    let (client, guard) = runtime().block_on(holds(&store));
    drop(guard);
    drop(client);
    assert_eq!((store.released(), store.is_closed()), (2, true));
}

/// Nothing may block an executor. So its thread waits at its end, for each of them.
#[test]
fn the_releases_of_clients_that_end_in_an_executor_are_waited_for_by_the_end_of_its_thread() {
    let second = Arc::new(Slow::default());
    let first = Arc::new(Slow {
        after: Some(Arc::clone(&second)),
        ..Slow::default()
    });
    let stores = [first, second];
    let both = stores.clone();
    let executor = std::thread::spawn(move || {
        runtime().block_on(async {
            for store in &both {
                drop(holds(store).await);
            }
        });
    });
    executor.join().unwrap();
    let ends = stores.map(|store| (store.released(), store.is_closed()));
    assert_eq!(ends, [(2, true); 2]);
}
