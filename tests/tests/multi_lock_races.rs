//! Several locks at once, when the last command to the store fails, hangs or is overtaken.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_runtime::{Guard, LockClient, LockClientBuilder, LockError, LostReason, StoreErrorKind};
use lock_store::memory::MemoryStore;
use lock_store::{Answer, Instant, Renewed, Store, StoreFuture};
use lock_testkit::store_decorator::{Interceptor, Reply, Request, decorated, failure};
use lock_testkit::{eventually, sleep_until};
use tokio::sync::Semaphore;

/// What happens to a command.
#[derive(Clone, Debug, Default)]
enum Fate {
    #[default]
    Passes,
    /// It is not carried out, and the client hears so at once.
    Fails,
    /// It is not carried out, and no reply comes within its time.
    Hangs,
    /// It is carried out. Its reply waits until the gate is opened.
    Gated(Arc<Semaphore>),
    /// The store loses the holds, and says so.
    LosesAll,
    /// The store loses the first hold, and says so. Who has the others does not answer.
    LosesTheFirst,
    /// The store says nothing about the holds.
    SaysNothing,
}

/// A fate for renewals, one for releases, and counts of the commands.
#[derive(Debug, Default)]
struct Trouble {
    renew: Mutex<Fate>,
    release: Mutex<Fate>,
    renewals: AtomicUsize,
    /// The number of holds in each renewal.
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

    fn count(&self, request: &Request) -> Fate {
        let (counter, fate) = match request {
            Request::Renew(holds) => {
                self.renewed.lock().unwrap().push(holds.len());
                (&self.renewals, self.renew.lock().unwrap().clone())
            }
            Request::Release(_) => (&self.releases, self.release.lock().unwrap().clone()),
            Request::Acquire(_) => (&self.acquires, Fate::Passes),
            Request::AcquireAll(_) => (&self.acquires_of_several, Fate::Passes),
            _ => return Fate::Passes,
        };
        counter.fetch_add(1, Ordering::SeqCst);
        fate
    }
}

impl Interceptor for Trouble {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        let down = || failure(StoreErrorKind::Disconnected, None);
        match self.count(&request) {
            Fate::Passes => request.send(store, by),
            Fate::Fails => Box::pin(std::future::ready(Err(down()))),
            Fate::Hangs => Box::pin(async move {
                sleep_until(by).await;
                Err(down())
            }),
            Fate::Gated(gate) => {
                let command = request.send(store, by);
                Box::pin(async move {
                    let answer = command.await;
                    let _open = gate.acquire().await;
                    answer
                })
            }
            Fate::LosesAll => Box::pin(async move {
                for key in request.keys() {
                    store.force_release(key.clone(), by).await?;
                }
                request.send(store, by).await
            }),
            Fate::LosesTheFirst => Box::pin(async move {
                let keys = request.keys();
                store.force_release(keys[0].clone(), by).await?;
                let mut replies = vec![Renewed::Unanswered; keys.len()];
                replies[0] = Renewed::Gone;
                Ok(Answer::new(Reply::Renew(replies), store.link()))
            }),
            Fate::SaysNothing => {
                let (value, link) = (Reply::Renew(Vec::new()), store.link());
                Box::pin(std::future::ready(Ok(Answer::new(value, link))))
            }
        }
    }
}

/// A client whose store can be troubled; another client of the same store without trouble; and a
/// key that the other holds.
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
        let trouble = Arc::<Trouble>::default();
        let builder = LockClient::builder().store({
            let (store, trouble) = (store.clone(), Arc::clone(&trouble));
            move |context| Ok(decorated(store.connect(context), Arc::clone(&trouble)))
        });
        let client = build(builder).connect().await.unwrap();
        let well = store.clone();
        let builder = LockClient::builder().store(move |context| Ok(well.connect(context)));
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
        let lease = Duration::from_millis(1500);
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
        setting.trouble.renew(Fate::Fails);
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
    setting.trouble.renew(Fate::Hangs);
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

/// The key that it is gone from may be somebody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_is_gone_is_not_trusted_although_others_are_not_answered() {
    let mut setting = Setting::new(|builder| builder).await;
    let request = setting
        .client
        .multi_lock(["x", "y"])
        .wait(Duration::from_secs(1));
    let waiting = tokio::spawn(request.acquire());
    setting.until_waiting().await;
    setting.trouble.renew(Fate::LosesTheFirst);
    setting.free().await;
    let result = waiting.await.unwrap();
    assert!(
        matches!(result, Err(LockError::Unavailable { .. })),
        "{result:?}"
    );
    setting.trouble.renew(Fate::Passes);
    setting.until_empty().await;
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
    // Whatever else ends by then, the shutdown is the reason.
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
