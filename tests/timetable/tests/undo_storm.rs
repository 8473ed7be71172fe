//! Many abandoned requests at a store that says nothing.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use lock_runtime::LockClient;
use lock_store::memory::MemoryStore;
use lock_store::{Instant, SimulatedStop, Store, StoreFuture};
use lock_testkit_core::store_decorator::{Interceptor, Reply, Request, decorated, silence};
use tokio::runtime::Handle;
use tokio::time::sleep;

const REQUESTS: u32 = 5000;

/// A store that answers only pings and releases, until it answers everything.
#[derive(Debug, Default)]
struct Mute {
    is_mute: AtomicBool,
    undos: AtomicU32,
    undone: AtomicU32,
    releases: AtomicU32,
    under_way: AtomicU32,
    most_under_way: AtomicU32,
}

impl Interceptor for Mute {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        let is_mute = self.is_mute.load(SeqCst);
        match request {
            Request::Acquire(_) if is_mute => silence(by, Some(store.link())),
            Request::Abandon(_) => Box::pin(async move {
                self.undos.fetch_add(1, SeqCst);
                let under_way = self.under_way.fetch_add(1, SeqCst) + 1;
                self.most_under_way.fetch_max(under_way, SeqCst);
                let reply = match is_mute {
                    true => silence(by, Some(store.link())).await,
                    false => request.send(store, by).await,
                };
                self.under_way.fetch_sub(1, SeqCst);
                self.undone.fetch_add(reply.is_ok().into(), SeqCst);
                reply
            }),
            Request::Release(_) => {
                self.releases.fetch_add(1, SeqCst);
                request.send(store, by)
            }
            request => request.send(store, by),
        }
    }
}

fn simulated(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(test);
}

async fn open(mute: &Arc<Mute>) -> LockClient {
    let (memory, mute) = (MemoryStore::new(), Arc::clone(mute));
    let builder = LockClient::builder().simulated(Handle::current(), 1, SimulatedStop::default());
    let builder =
        builder.store(move |context| Ok(decorated(memory.connect(context), Arc::clone(&mute))));
    builder.connect().await.unwrap()
}

/// Makes many requests, and drops them while their commands are under way.
async fn cancel_many(client: &LockClient) {
    let request = |number| client.lock(format!("k{number}")).wait(Duration::ZERO);
    let requests = (0..REQUESTS).map(|number| tokio::spawn(request(number).acquire()));
    let requests: Vec<_> = requests.collect();
    sleep(Duration::from_millis(100)).await;
    requests.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn cancelled_requests_make_no_storm_at_a_silent_store_and_are_undone_when_it_answers() {
    simulated(async {
        let mute = Arc::<Mute>::default();
        let client = open(&mute).await;
        mute.is_mute.store(true, SeqCst);
        cancel_many(&client).await;
        sleep(Duration::from_secs(20)).await;
        let undos = mute.undos.load(SeqCst);
        assert!(undos < REQUESTS, "{undos} commands in 20 s");
        let most = mute.most_under_way.load(SeqCst);
        assert!(most <= 64, "{most} undos were under way at once");
        mute.is_mute.store(false, SeqCst);
        // The longest pause between two tries is two seconds, and one try may be under way.
        sleep(Duration::from_millis(2500)).await;
        assert_eq!(mute.undone.load(SeqCst), REQUESTS);
        let began = tokio::time::Instant::now();
        client.shutdown(Duration::ZERO).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nothing is left to do");
    });
}

#[test]
fn a_release_and_later_requests_do_not_stand_behind_the_undos_of_others() {
    simulated(async {
        let mute = Arc::<Mute>::default();
        let client = open(&mute).await;
        let held = client.lock("held").acquire().await.unwrap();
        mute.is_mute.store(true, SeqCst);
        cancel_many(&client).await;
        drop(held);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(mute.releases.load(SeqCst), 1);
        // The undo of the last key has not had its turn. A new request waits for it no longer than
        // for one command.
        let last = client.lock(format!("k{}", REQUESTS - 1));
        let last = tokio::spawn(last.wait(Duration::from_secs(5)).acquire());
        sleep(Duration::from_millis(600)).await;
        mute.is_mute.store(false, SeqCst);
        let began = tokio::time::Instant::now();
        drop(last.await.unwrap().unwrap());
        assert!(began.elapsed() < Duration::from_secs(1));
    });
}
