//! What the places of a stopped process cost the others, and what they would cost if the store
//! suspended none.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{Lock, LockClient};
use lock_store::memory::MemoryStore;
use lock_store::{Acquired, Queue, SimulatedStop, Store, StoreFuture};
use lock_testkit_core::store_decorator::{Interceptor, Reply, Request, decorated};
use tokio::runtime::{Builder, Handle};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// A client in a process that can be stopped.
struct Process {
    client: LockClient,
    pause: SimulatedStop,
}

/// The server of a process.
#[derive(Clone, Copy)]
enum Server {
    Suspends,
    /// It hears of each place each second, whatever becomes of the client, and no wait ends. To it,
    /// nobody stands still.
    SuspendsNobody,
}

/// Asks again for each place of a client.
#[derive(Debug)]
struct NeverSilent(Arc<dyn Store>);

impl Interceptor for NeverSilent {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        mut request: Request,
        by: lock_store::Instant,
    ) -> StoreFuture<'s, Reply> {
        if let Request::Acquire(place) = &mut request
            && place.queue == Queue::Join
        {
            place.wait = None;
            let (store, mut again) = (Arc::clone(&self.0), place.clone());
            again.lease = again.first_lease;
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(SECOND).await;
                    let answer = store.acquire(again.clone(), by).await.unwrap();
                    if matches!(answer.value, Acquired::Granted(_)) {
                        return;
                    }
                }
            });
        }
        request.send(store, by)
    }
}

impl Process {
    async fn start(id: u128, memory: &MemoryStore, server: Server) -> Self {
        let (pause, memory) = (SimulatedStop::default(), memory.clone());
        let client = LockClient::builder()
            .simulated(Handle::current(), id, pause.clone())
            .store(move |context| {
                let store = memory.connect(context);
                Ok(match server {
                    Server::Suspends => store,
                    Server::SuspendsNobody => {
                        decorated(Arc::clone(&store), Arc::new(NeverSilent(store)))
                    }
                })
            })
            .connect()
            .await
            .unwrap();
        Self { client, pause }
    }

    /// Makes a request of this process. From now on it has a place in the store.
    async fn wait(&self, request: Lock) {
        let pause = self.pause.clone();
        tokio::spawn(async move { drop(pause.gate(request.acquire()).await) });
        tokio::time::sleep(SECOND / 100).await;
    }
}

fn simulated<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

/// How long the last of a queue waits behind eight places of a stopped process.
async fn eight_places(server: Server) -> Duration {
    let memory = MemoryStore::new();
    let stopped = Process::start(1, &memory, server).await;
    let runs = Process::start(2, &memory, Server::Suspends).await.client;
    let held = runs.lock("k").acquire().await.unwrap();
    for _ in 0..8 {
        let place = stopped.client.lock("k").fair().wait(60 * SECOND);
        stopped.wait(place).await;
    }
    stopped.pause.stop();
    let last = tokio::spawn(runs.lock("k").fair().wait(60 * SECOND).acquire());
    tokio::time::sleep(SECOND / 100).await;
    held.release().await.unwrap();
    let released = Instant::now();
    assert!(last.await.unwrap().unwrap().is_held());
    released.elapsed()
}

/// How long a reader waits behind a stopped writer, beside another reader. `None` if it waits in
/// vain.
async fn a_writer(server: Server, wait: Duration) -> Option<Duration> {
    let memory = MemoryStore::new();
    let stopped = Process::start(1, &memory, server).await;
    let runs = Process::start(2, &memory, Server::Suspends).await.client;
    let reader = runs.rw_lock("k").read().acquire().await.unwrap();
    let write = stopped.client.rw_lock("k").write().wait(wait);
    stopped.wait(write).await;
    stopped.pause.stop();
    let asked = Instant::now();
    let another = runs.rw_lock("k").read().wait(30 * SECOND).acquire().await;
    drop(reader);
    another.ok().map(|_| asked.elapsed())
}

#[test]
fn the_places_of_a_stopped_process_cost_one_short_first_lease() {
    let cost = simulated(eight_places(Server::Suspends));
    assert!(cost < 4 * SECOND, "{cost:?}");
}

#[test]
fn a_stopped_writer_costs_two_seconds_or_the_rest_of_its_wait() {
    let cost = simulated(a_writer(Server::Suspends, 60 * SECOND)).unwrap();
    assert!(cost < 4 * SECOND, "{cost:?}");
    let cost = simulated(a_writer(Server::Suspends, SECOND / 2)).unwrap();
    assert!(cost < 2 * SECOND, "{cost:?}");
}

#[test]
fn a_store_that_passes_no_place_over_is_found_by_its_cost() {
    let cost = simulated(eight_places(Server::SuspendsNobody));
    assert!(cost > 15 * SECOND, "{cost:?}");
    let writer = a_writer(Server::SuspendsNobody, SECOND / 2);
    assert_eq!(simulated(writer), None);
}
