//! Every option of the attribute, on the real runtime.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Barrier;

use lock_runtime::{
    Guard, LockClient, LockError, LockKey, LostReason, distributed_lock, lock_key, rate_limited,
};

const KEY: &str = "plain <text>";

#[distributed_lock(key = KEY)]
async fn constant_key() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:<product>", lease = "60ms")]
async fn fixed_lease(product: u64) -> Result<(), LockError> {
    std::future::pending().await
}

const LEASE: Duration = Duration::from_millis(60);
const SECOND: Duration = Duration::from_secs(1);

#[distributed_lock(key = "k", lease = LEASE)]
async fn lease_of_a_constant() -> Result<(), LockError> {
    std::future::pending().await
}

#[distributed_lock(
    key = "k",
    lease = lease,
    max_hold = limits.0,
    hold_at_least = limits.1 * 2,
    renew = true,
)]
async fn durations_of_parameters(
    lease: Duration,
    limits: (Duration, Duration),
) -> Result<Duration, LockError> {
    Ok(limits.0 - lease)
}

#[distributed_lock(key = "k", lease = "1500ms", renew = true, max_hold = "3s")]
async fn limited() -> Result<(), LockError> {
    std::future::pending().await
}

#[distributed_lock(key = "k", max_hold = "3s")]
async fn capped() -> Result<(), LockError> {
    std::future::pending().await
}

#[distributed_lock(key = "k", lease = "60ms", on_lost = "continue", guard = held)]
async fn continue_when_lost() -> Result<bool, LockError> {
    held.lost().await;
    Ok(held.is_held())
}

#[distributed_lock(key = "k", wait = "0s")]
async fn one_try() -> Result<u32, LockError> {
    Ok(1)
}

#[distributed_lock(key = "k", wait = "20ms", on_busy = "skip")]
async fn skip() -> Result<Option<u32>, LockError> {
    Ok(Some(1))
}

#[distributed_lock(key = "k", on_busy = "skip")]
async fn skip_at_once() -> Result<Option<u32>, LockError> {
    Ok(Some(1))
}

#[distributed_lock(key = "k", wait = "0s", on_busy = "skip", on_error = |error| panic!("{error}"))]
async fn skip_without_result(ran: &AtomicU32) {
    ran.fetch_add(1, Ordering::SeqCst);
}

#[distributed_lock(
    key = "k",
    wait = "0s",
    on_error = |error| format!("sorry: {}", error.is_busy()),
)]
async fn explain() -> String {
    "done".to_owned()
}

#[distributed_lock(key = "job", hold_at_least = "2s")]
async fn job(fails: bool) -> Result<(), LockError> {
    if fails {
        Err(LockError::Shutdown)
    } else {
        Ok(())
    }
}

#[distributed_lock(key = "k", fence = token)]
async fn fenced() -> Result<u64, LockError> {
    Ok(token.into())
}

#[distributed_lock(key = "k", reentrant = false, wait = "5s")]
async fn once_only(levels: u32) -> Result<u32, LockError> {
    if levels == 0 {
        Ok(0)
    } else {
        Box::pin(once_only(levels - 1)).await
    }
}

#[distributed_lock(key = "prices", mode = "read", wait = "0s")]
async fn read(inside: &Barrier) -> Result<(), LockError> {
    inside.wait().await;
    inside.wait().await;
    Ok(())
}

#[distributed_lock(key = "prices", mode = "read", wait = "0s")]
async fn read_then_write() -> Result<(), LockError> {
    write().await
}

#[distributed_lock(key = "prices", mode = "write", wait = "0s")]
async fn write() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "prices", mode = "write")]
async fn write_then_read() -> Result<(), LockError> {
    read(&Barrier::new(1)).await
}

#[distributed_lock(key = "reports", permits = most, wait = "0s")]
async fn report(most: u32, inside: &Barrier) -> Result<(), LockError> {
    inside.wait().await;
    inside.wait().await;
    Ok(())
}

/// Tells which of the three keys are held.
#[distributed_lock(keys = ["account:<from>", "account:<to>"], fence = tokens)]
async fn transfer(from: u8, to: u8, client: &LockClient) -> Result<[u64; 2], LockError> {
    for (id, held) in [(from, true), (to, true), (99, false)] {
        let found = client.inspect(lock_key!("account:<id>")).await?;
        assert_eq!(found.holder.is_some(), held, "{id}");
    }
    Ok(tokens.map(u64::from))
}

struct Shop {
    locks: LockClient,
    sold: u32,
}

impl Shop {
    #[distributed_lock(key = "shop:<product>", client = &self.locks, fair = true)]
    async fn sell(&mut self, product: &str) -> Result<u32, LockError> {
        assert!(
            self.locks
                .inspect(lock_key!("shop:<product>"))
                .await?
                .holder
                .is_some()
        );
        self.sold += 1;
        Ok(self.sold)
    }
}

/// A job that takes its options from its configuration.
struct Job {
    locks: LockClient,
    wait: Duration,
}

impl Job {
    fn wait(&self) -> Duration {
        self.wait
    }

    #[distributed_lock(key = "k", wait = self.wait(), client = &self.locks)]
    async fn run(&mut self) -> Result<(), LockError> {
        self.wait += self.wait;
        Ok(())
    }

    #[rate_limited(key = "r", rate = "1/h", wait = self.wait(), client = &self.locks)]
    async fn limited(&self) -> Result<(), LockError> {
        Ok(())
    }
}

struct Transaction(Arc<Mutex<Vec<bool>>>, LockClient);

impl Drop for Transaction {
    fn drop(&mut self) {
        // On a plain thread, since a destructor can't wait.
        let client = self.1.clone();
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
        };
        let held = std::thread::spawn(move || {
            runtime()
                .block_on(client.inspect("k"))
                .unwrap()
                .holder
                .is_some()
        });
        self.0.lock().unwrap().push(held.join().unwrap());
    }
}

#[distributed_lock(key = "k")]
async fn with_transaction(_transaction: Transaction) -> Result<(), LockError> {
    Ok(())
}

async fn until_waiting(client: &LockClient) {
    lock_testkit::eventually("it waits", async || {
        client.health().await.unwrap().waiting == 1
    })
    .await;
}

/// A client for annotated functions. Another client holds the lock of one key.
async fn busy(key: &str) -> (LockClient, Guard) {
    let client = LockClient::in_memory();
    let guard = client.lock(key).acquire().await.unwrap();
    (client, guard)
}

fn lost_by<T: std::fmt::Debug>(result: Result<T, LockError>) -> LostReason {
    match result {
        Err(LockError::Lost { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_constant_is_not_read_as_a_template() {
    let (client, _guard) = busy(KEY).await;
    let client = &client;
    let locked = client.scope(async {
        tokio::select! {
            _ = constant_key() => panic!("it is held"),
            () = until_waiting(client) => {}
        }
    });
    locked.await;
    assert_eq!(LockKey::from(KEY).as_str(), KEY);
}

#[tokio::test]
async fn leases_end_bodies_and_max_hold_ends_renewals() {
    let client = LockClient::in_memory();
    assert_eq!(
        lost_by(client.scope(fixed_lease(7)).await),
        LostReason::Expired
    );
    let started = Instant::now();
    assert_eq!(lost_by(client.scope(limited()).await), LostReason::MaxHold);
    assert!(started.elapsed() > 2 * SECOND, "it was renewed");
    assert!(!client.scope(continue_when_lost()).await.unwrap());
}

#[tokio::test]
async fn a_longer_lease_of_the_client_breaks_no_function_with_a_max_hold() {
    let cases = [None, Some(SECOND), Some(3600 * SECOND)].map(async |lease| {
        let builder = LockClient::builder().url("memory:");
        let builder = match lease {
            Some(lease) => builder.lease(lease),
            None => builder,
        };
        let client = builder.connect().await.unwrap();
        let lost = tokio::time::timeout(30 * SECOND, client.scope(capped())).await;
        assert_eq!(lost_by(lost.unwrap()), LostReason::MaxHold, "{lease:?}");
    });
    futures_util::future::join_all(cases).await;
}

#[tokio::test]
async fn durations_are_expressions_too_and_are_checked_when_they_are_known() {
    let ms = Duration::from_millis;
    let client = LockClient::in_memory();
    let lost = client.scope(lease_of_a_constant()).await;
    assert_eq!(lost_by(lost), LostReason::Expired);
    let call = |lease, limits| client.scope(durations_of_parameters(lease, limits));
    let started = Instant::now();
    let done = call(ms(100), (ms(300), ms(100))).await;
    assert_eq!(done.unwrap(), ms(200));
    let held = client.lock("k").acquire().await.unwrap();
    assert!(started.elapsed() >= ms(200), "it was kept for twice 100 ms");
    held.release().await.unwrap();
    for (lease, limits) in [
        (ms(1), (ms(300), ms(1))),
        (ms(100), (ms(50), ms(1))),
        (ms(100), (ms(300), Duration::MAX / 2)),
    ] {
        let refused = call(lease, limits).await;
        assert!(
            matches!(refused, Err(LockError::Config { .. })),
            "{lease:?} {limits:?}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_wait_is_asked_of_self() {
    let (locks, _guard) = busy("k").await;
    let wait = Duration::ZERO;
    let mut job = Job { locks, wait };
    let busy = job.run().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    job.limited().await.unwrap();
    let limited = job.limited().await;
    assert!(
        matches!(limited, Err(LockError::RateLimited { .. })),
        "{limited:?}"
    );
}

#[tokio::test]
async fn a_skip_without_a_wait_does_not_wait() {
    let (client, _guard) = busy("k").await;
    let client = &client;
    let skipped = client.scope(async {
        tokio::select! {
            skipped = skip_at_once() => skipped,
            () = until_waiting(client) => panic!("it waits"),
        }
    });
    assert_eq!(skipped.await.unwrap(), None);
}

#[tokio::test]
async fn busy_is_an_error_or_skipped_or_explained() {
    let (client, guard) = busy("k").await;
    let ran = AtomicU32::new(0);
    assert!(matches!(
        client.scope(one_try()).await,
        Err(LockError::Busy { .. })
    ));
    assert_eq!(client.scope(skip()).await.unwrap(), None);
    client.scope(skip_without_result(&ran)).await;
    assert_eq!(client.scope(explain()).await, "sorry: true");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    guard.release().await.unwrap();
    assert_eq!(client.scope(one_try()).await.unwrap(), 1);
    assert_eq!(client.scope(skip()).await.unwrap(), Some(1));
    client.scope(skip_without_result(&ran)).await;
    assert_eq!(client.scope(explain()).await, "done");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_job_keeps_its_key_for_the_rest_of_hold_at_least() {
    for fails in [false, true] {
        let client = LockClient::in_memory();
        let started = Instant::now();
        assert_eq!(client.scope(job(fails)).await.is_err(), fails);
        assert!(client.lock("job").try_acquire().await.unwrap().is_none());
        assert!(client.lock("job").acquire().await.unwrap().is_held());
        assert!(started.elapsed() >= 2 * SECOND);
    }
}

#[tokio::test]
async fn tokens_rise_from_call_to_call() {
    let client = LockClient::in_memory();
    let first = client.scope(fenced()).await.unwrap();
    assert!(client.scope(fenced()).await.unwrap() > first);
}

#[tokio::test]
async fn reentrant_false_refuses_the_nested_call_at_once() {
    let client = LockClient::in_memory();
    assert_eq!(client.scope(once_only(0)).await.unwrap(), 0);
    assert!(matches!(
        client.scope(once_only(1)).await,
        Err(LockError::WouldDeadlock { .. })
    ));
}

#[tokio::test]
async fn a_client_of_self_works_with_a_mutable_method() {
    let mut shop = Shop {
        locks: LockClient::in_memory(),
        sold: 0,
    };
    assert_eq!(shop.sell("a b").await.unwrap(), 1);
    assert_eq!(shop.sell("a b").await.unwrap(), 2);
}

#[tokio::test]
async fn a_parameter_that_the_body_never_mentions_is_dropped_before_the_release() {
    let client = LockClient::in_memory();
    let seen = Arc::default();
    client
        .scope(with_transaction(Transaction(
            Arc::clone(&seen),
            client.clone(),
        )))
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), [true], "the lock was still held");
}

#[tokio::test]
async fn without_a_client_the_body_does_not_run() {
    assert!(matches!(one_try().await, Err(LockError::NotInitialized)));
}

#[tokio::test]
async fn readers_are_inside_together_and_a_writer_is_alone() {
    let client = LockClient::in_memory();
    let inside = Barrier::new(3);
    let reader = || client.scope(read(&inside));
    let writer = async {
        inside.wait().await;
        let refused = client.scope(write()).await;
        inside.wait().await;
        refused
    };
    let (one, other, refused) = tokio::join!(reader(), reader(), writer);
    one.unwrap();
    other.unwrap();
    assert!(
        matches!(refused, Err(LockError::Busy { .. })),
        "{refused:?}"
    );
    client.scope(write()).await.unwrap();
    client.scope(write_then_read()).await.unwrap();
    let refused = client.scope(read_then_write()).await;
    assert!(
        matches!(refused, Err(LockError::WouldDeadlock { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn as_many_are_inside_as_there_are_permits() {
    let client = LockClient::in_memory();
    let inside = Barrier::new(3);
    let holder = || client.scope(report(2, &inside));
    let third = async {
        inside.wait().await;
        let refused = holder().await;
        // Each request is admitted by its own number.
        let fewer = client.scope(report(1, &inside)).await;
        inside.wait().await;
        (refused, fewer)
    };
    let (one, other, (refused, fewer)) = tokio::join!(holder(), holder(), third);
    one.unwrap();
    other.unwrap();
    assert!(
        matches!(refused, Err(LockError::Busy { .. })),
        "{refused:?}"
    );
    assert!(matches!(fewer, Err(LockError::Busy { .. })), "{fewer:?}");
    let none = client.scope(report(0, &inside)).await;
    assert!(matches!(none, Err(LockError::Config { .. })), "{none:?}");
}

#[tokio::test]
async fn several_keys_are_held_at_once_whatever_their_order() {
    let client = LockClient::in_memory();
    let transfer = |from, to| client.scope(transfer(from, to, &client));
    let [one, two] = transfer(1, 2).await.unwrap();
    let (there, back) = tokio::join!(transfer(1, 2), transfer(2, 1));
    let (there, back) = (there.unwrap(), back.unwrap());
    // Each key's own token rises, wherever the key stands in the list.
    assert!(there[0] > one && back[1] > one && there[0] != back[1]);
    assert!(there[1] > two && back[0] > two && there[1] != back[0]);
    let [same, again] = transfer(3, 3).await.unwrap();
    assert_eq!(same, again);
}
