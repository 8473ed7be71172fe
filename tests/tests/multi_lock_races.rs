//! Several locks at once, when what is last asked of the store fails, hangs or is overtaken.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient, LockClientBuilder, LockError, LockKey, LostReason};
use lock_store::Clock;
use lock_store::memory::MemoryStore;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Answer, Claim, ClientId, Failure, Fenced, Inspection,
    LatchRequest, Latched, Link, Listener, Owner, RateRequest, Rated, Release, Released, Renewal,
    Renewed, Store, StoreFuture, WakeUp,
};
use lock_tests::eventually;
use tokio::sync::Semaphore;

/// What becomes of a command.
#[derive(Clone, Debug)]
enum Fate {
    Passes,
    /// It is not carried out, and that is told at once.
    Fails(Failure),
    /// It is not carried out, and nothing is told for as long as it may take.
    Hangs(Failure),
    /// It is carried out, and then its reply waits until the gate is opened.
    Gated(Arc<Semaphore>),
    /// The store loses the holds, and says so.
    LosesAll,
    /// The store says nothing about the holds.
    SaysNothing,
}

/// The embedded store with a fate for each kind of command.
#[derive(Clone, Debug)]
struct Troubled {
    inner: Arc<dyn Store>,
    trouble: Arc<Trouble>,
}

#[derive(Debug)]
struct Trouble {
    renew: Mutex<Fate>,
    release: Mutex<Fate>,
    renewals: AtomicUsize,
    /// Of how many holds each was.
    renewed: Mutex<Vec<usize>>,
    releases: AtomicUsize,
    acquires: AtomicUsize,
    acquires_of_several: AtomicUsize,
}

impl Trouble {
    fn renew(&self, fate: Fate) {
        *self.renew.lock().unwrap() = fate;
    }

    fn release(&self, fate: Fate) {
        *self.release.lock().unwrap() = fate;
    }
}

async fn meets<T>(
    fate: Fate,
    by: Instant,
    command: StoreFuture<'_, T>,
) -> Result<Answer<T>, Failure> {
    match fate {
        Fate::Fails(failure) => Err(failure),
        Fate::Hangs(failure) => {
            tokio::time::sleep_until(by.into()).await;
            Err(failure)
        }
        Fate::Gated(gate) => {
            let answer = command.await;
            let _open = gate.acquire().await;
            answer
        }
        Fate::Passes | Fate::LosesAll | Fate::SaysNothing => command.await,
    }
}

impl Store for Troubled {
    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        self.trouble.renewals.fetch_add(1, Ordering::SeqCst);
        self.trouble.renewed.lock().unwrap().push(holds.len());
        let fate = self.trouble.renew.lock().unwrap().clone();
        if matches!(fate, Fate::LosesAll) {
            return Box::pin(async move {
                for hold in &holds {
                    let key = hold.claim.key.clone();
                    self.inner.force_release(key, by).await?;
                }
                self.inner.renew(holds, by).await
            });
        }
        if matches!(fate, Fate::SaysNothing) {
            let (value, link) = (Vec::new(), self.inner.link());
            return Box::pin(std::future::ready(Ok(Answer { value, link })));
        }
        Box::pin(meets(fate, by, self.inner.renew(holds, by)))
    }
    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        self.trouble.releases.fetch_add(1, Ordering::SeqCst);
        let fate = self.trouble.release.lock().unwrap().clone();
        Box::pin(meets(fate, by, self.inner.release(requests, by)))
    }
    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let count = &self.trouble.acquires_of_several;
        count.fetch_add(1, Ordering::SeqCst);
        self.inner.acquire_all(requests, by)
    }
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        self.trouble.acquires.fetch_add(1, Ordering::SeqCst);
        self.inner.acquire(request, by)
    }
    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        self.inner.fence(claim, by)
    }
    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        self.inner.shrink(claim, permits, by)
    }
    fn resize(&self, key: LockKey, of: u32, by: Instant) -> StoreFuture<'_, bool> {
        self.inner.resize(key, of, by)
    }
    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        self.inner.abandon(request, by)
    }
    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        self.inner.inspect(key, by)
    }
    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        self.inner.force_release(key, by)
    }
    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        self.inner.rate(request, by)
    }
    fn latch(&self, request: LatchRequest, by: Instant) -> StoreFuture<'_, Latched> {
        self.inner.latch(request, by)
    }
    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        self.inner.ping(by)
    }
    fn link(&self) -> Link {
        self.inner.link()
    }
    fn close(&self) {
        self.inner.close();
    }
    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }
}

#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn granted(&self, _: Link, _: Owner, _: Option<u64>) -> WakeUp {
        WakeUp::default()
    }
    fn recheck(&self) {}
}

/// A failure that may pass: that of a server which does not run.
async fn failure() -> Failure {
    let listener: Arc<dyn Listener> = Arc::new(Deaf);
    let clock = Clock::new(tokio::runtime::Handle::current());
    let nowhere = "redis://127.0.0.1:1/";
    let store = lock_tests::redis_store(nowhere, "lock", ClientId(1), &listener, clock);
    let by = Instant::now() + Duration::from_secs(1);
    store.ping(by).await.unwrap_err()
}

/// A client whose store can be troubled, another one whose store is the same and well, and a key that it holds.
struct Setting {
    store: MemoryStore,
    trouble: Arc<Trouble>,
    client: LockClient,
    other: LockClient,
    held: Option<Guard>,
}

impl Setting {
    async fn new(build: impl FnOnce(LockClientBuilder) -> LockClientBuilder) -> Self {
        let store = MemoryStore::new();
        let trouble = Arc::new(Trouble {
            renew: Mutex::new(Fate::Passes),
            release: Mutex::new(Fate::Passes),
            renewals: AtomicUsize::new(0),
            renewed: Mutex::default(),
            releases: AtomicUsize::new(0),
            acquires: AtomicUsize::new(0),
            acquires_of_several: AtomicUsize::new(0),
        });
        let builder = LockClient::builder().store({
            let (store, trouble) = (store.clone(), Arc::clone(&trouble));
            move |namespace, id, listener, clock| {
                let (inner, trouble) = (
                    store.connect(namespace, id, listener, clock),
                    trouble.clone(),
                );
                Arc::new(Troubled { inner, trouble })
            }
        });
        let client = build(builder).connect().await.unwrap();
        let well = store.clone();
        let builder = LockClient::builder().store(move |namespace, id, listener, clock| {
            well.connect(namespace, id, listener, clock)
        });
        let other = builder.connect().await.unwrap();
        let held = other.lock("y").acquire().await.unwrap();
        Self {
            store,
            trouble,
            client,
            other,
            held: Some(held),
        }
    }

    async fn until_waiting(&self) {
        eventually("it has the first and waits for the second", async || {
            self.other.inspect("y").await.unwrap().waiting == 1
        })
        .await;
    }

    async fn until_empty(&self) {
        eventually("the store is empty", async || {
            self.store.leftovers(Instant::now()) == 0
        })
        .await;
    }

    async fn free(&mut self) {
        self.held.take().unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_takes_all_that_are_free_one_renews_them_for_many_leases_and_one_releases_them()
{
    let mut setting = Setting::new(|builder| builder).await;
    let trouble = Arc::clone(&setting.trouble);
    for gathered in [false, true] {
        let lease = Duration::from_millis(600);
        let keys = if gathered { ["x", "y"] } else { ["x", "z"] };
        let request = setting.client.multi_lock(keys).lease(lease).renew(true);
        let waiting = tokio::spawn(request.acquire());
        if gathered {
            setting.until_waiting().await;
            setting.free().await;
        }
        let guard = waiting.await.unwrap().unwrap();
        if !gathered {
            assert_eq!(trouble.acquires_of_several.load(Ordering::SeqCst), 1);
            assert_eq!(trouble.acquires.load(Ordering::SeqCst), 0);
        }
        trouble.renewed.lock().unwrap().clear();
        let held = Instant::now();
        eventually("it is renewed again and again", async || {
            assert!(guard.is_held());
            held.elapsed() > 3 * lease && trouble.renewed.lock().unwrap().len() > 5
        })
        .await;
        let renewed = trouble.renewed.lock().unwrap().clone();
        assert!(renewed.iter().all(|holds| *holds == 2), "{renewed:?}");
        let before = trouble.releases.load(Ordering::SeqCst);
        guard.release().await.unwrap();
        assert_eq!(trouble.releases.load(Ordering::SeqCst), before + 1);
        assert_eq!(setting.client.health().await.unwrap().held, 0);
    }
    setting.until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_whose_last_renewal_failed_gets_its_lease_from_the_watchdog() {
    for renew in [true, false] {
        let mut setting = Setting::new(|builder| builder).await;
        let lease = Duration::from_secs(60);
        let request = setting.client.multi_lock(["x", "y"]).lease(lease);
        let waiting = tokio::spawn(request.renew(renew).acquire());
        setting.until_waiting().await;
        let failure = failure().await;
        setting.trouble.renew(Fate::Fails(failure));
        setting.free().await;
        let guard = waiting.await.unwrap().unwrap();
        assert!(
            guard.remaining() < Duration::from_secs(2),
            "handed over for a moment only"
        );
        setting.trouble.renew(Fate::Passes);
        eventually("it has the whole lease", async || {
            assert!(guard.is_held());
            guard.remaining() > lease - Duration::from_secs(20)
        })
        .await;
        guard.release().await.unwrap();
        setting.until_empty().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_hangs_in_the_end_is_not_called_busy_and_the_wait_is_kept() {
    let wait = Duration::from_secs(3);
    let slow = |builder: LockClientBuilder| builder.command_timeout(Duration::from_secs(2));
    let mut setting = Setting::new(slow).await;
    let request = setting.client.multi_lock(["x", "y"]).wait(wait);
    let request = request.lease(Duration::from_millis(600)).renew(true);
    let asked = Instant::now();
    let waiting = tokio::spawn(request.acquire());
    setting.until_waiting().await;
    let failure = failure().await;
    setting.trouble.renew(Fate::Hangs(failure));
    setting.free().await;
    let result = waiting.await.unwrap();
    let took = asked.elapsed();
    assert!(
        matches!(result, Err(LockError::Unavailable { .. })),
        "{result:?}"
    );
    assert!(took < wait + Duration::from_millis(900), "{took:?}");
    setting.until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_that_the_store_did_not_confirm_are_not_trusted_and_it_is_not_asked_all_the_time() {
    for fate in [Fate::LosesAll, Fate::SaysNothing] {
        let mut setting = Setting::new(|builder| builder).await;
        let lease = Duration::from_secs(1);
        let request = setting.client.multi_lock(["x", "y"]).lease(lease);
        let waiting = tokio::spawn(request.wait(2 * lease).acquire());
        setting.until_waiting().await;
        setting.trouble.renew(fate);
        setting.free().await;
        let result = waiting.await.unwrap();
        assert!(matches!(result, Err(LockError::Busy { .. })), "{result:?}");
        let asked = setting.trouble.renewals.load(Ordering::SeqCst);
        assert!((2..40).contains(&asked), "{asked} times in two seconds");
        setting.until_empty().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_during_the_last_renewal_is_told_as_such() {
    let mut setting = Setting::new(|builder| builder).await;
    let request = setting.client.multi_lock(["x", "y"]);
    let waiting = tokio::spawn(request.wait(Duration::from_secs(1)).acquire());
    setting.until_waiting().await;
    let gate = Arc::new(Semaphore::new(0));
    setting.trouble.renew(Fate::Gated(Arc::clone(&gate)));
    setting.free().await;
    eventually("it has both", async || {
        setting.trouble.renewals.load(Ordering::SeqCst) >= 2
    })
    .await;
    let shutdown = tokio::spawn({
        let client = setting.client.clone();
        async move { client.shutdown(Duration::ZERO).await }
    });
    eventually("the shutdown releases both", async || {
        setting.trouble.releases.load(Ordering::SeqCst) >= 2
    })
    .await;
    // Whatever is over then, the shutdown is the reason.
    tokio::time::sleep(Duration::from_millis(200)).await;
    gate.add_permits(100);
    let result = waiting.await.unwrap();
    assert!(matches!(result, Err(LockError::Shutdown)), "{result:?}");
    shutdown.await.unwrap();
    assert_eq!(setting.store.leftovers(Instant::now()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_that_waits_for_a_release_of_its_client_asks_for_nothing_after_a_shutdown() {
    let setting = Setting::new(|builder| builder).await;
    let gate = Arc::new(Semaphore::new(0));
    let guard = setting.client.lock("x").acquire().await.unwrap();
    setting.trouble.release(Fate::Gated(Arc::clone(&gate)));
    drop(guard);
    let attempt = tokio::spawn(setting.client.multi_lock(["x", "z"]).try_acquire());
    tokio::time::sleep(Duration::from_millis(50)).await;
    let shutdown = tokio::spawn({
        let client = setting.client.clone();
        async move { client.shutdown(Duration::ZERO).await }
    });
    let result = attempt.await.unwrap();
    assert!(matches!(result, Err(LockError::Shutdown)), "{result:?}");
    let asked = &setting.trouble.acquires_of_several;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    gate.add_permits(100);
    shutdown.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shutdown_in_the_moment_of_the_grant_leaves_no_hold_and_no_key() {
    for round in 0..300 {
        let mut setting = Setting::new(|builder| builder).await;
        let waiting = tokio::spawn(setting.client.multi_lock(["x", "y"]).acquire());
        setting.until_waiting().await;
        let shutdown = tokio::spawn({
            let client = setting.client.clone();
            async move {
                for _ in 0..round % 30 {
                    std::hint::spin_loop();
                    tokio::task::yield_now().await;
                }
                client.shutdown(Duration::ZERO).await;
            }
        });
        setting.free().await;
        let result = waiting.await.unwrap();
        shutdown.await.unwrap();
        match result {
            Ok(guard) => {
                assert!(!guard.is_held(), "round {round}");
                match guard.release().await {
                    Err(LockError::Lost { reason, .. }) => assert_eq!(reason, LostReason::Shutdown),
                    other => panic!("{other:?}"),
                }
            }
            Err(LockError::Shutdown) => {}
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(setting.store.leftovers(Instant::now()), 0, "round {round}");
    }
}
