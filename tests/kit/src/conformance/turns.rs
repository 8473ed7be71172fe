//! Holds that pass from one task of a process to the next without the store. They are as safe and
//! as fair as other holds.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::{Backend, eventually};
use lock_runtime::{Guard, LockClient, LockError, LostReason};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::RENEWED;
use crate::polled;

super::on_every_store!(
    tasks_of_one_process_hand_a_hold_off_without_the_store,
    other_processes_have_their_turn,
    a_turn_ends_at_the_limit_of_hand_offs,
    tokens_rise_and_are_unique_over_all_hand_offs,
    a_fair_request_is_not_passed_by,
    a_hold_passed_to_a_dropped_request_goes_to_the_next,
    a_passed_hold_lives_as_long_as_its_own_lease_and_no_longer,
    a_lost_hold_is_not_handed_off,
    a_kept_key_is_not_handed_off,
    a_passed_hold_is_renewed_and_lost_as_any_other,
    a_panic_passes_the_hold_on,
    a_shutdown_ends_a_hold_that_is_handed_off,
    turned_off_every_hand_over_goes_through_the_store,
    holds_dropped_at_once_are_never_left_without_an_owner,
    a_request_inside_a_hold_that_has_ended_is_refused,
    a_request_that_is_not_polled_is_skipped,
    an_unpolled_request_that_has_asked_the_store_is_skipped,
    a_request_that_is_skipped_has_no_place_in_the_store,
    a_request_that_wakes_before_its_successor_takes_nothing_from_it,
    a_shutdown_ends_a_hand_off_to_a_request_that_is_not_polled,
);

super::without_a_queue!(
    tokens_rise_and_are_unique_over_all_hand_offs,
    other_processes_have_their_turn,
    a_passed_hold_is_renewed_and_lost_as_any_other,
    a_panic_passes_the_hold_on,
    a_passed_hold_lives_as_long_as_its_own_lease_and_no_longer,
    a_shutdown_ends_a_hand_off_to_a_request_that_is_not_polled,
    a_hold_passed_to_a_dropped_request_goes_to_the_next,
    a_kept_key_is_not_handed_off,
    a_lost_hold_is_not_handed_off,
    a_request_that_wakes_before_its_successor_takes_nothing_from_it,
    a_shutdown_ends_a_hold_that_is_handed_off,
    holds_dropped_at_once_are_never_left_without_an_owner,
    tasks_of_one_process_hand_a_hold_off_without_the_store,
    turned_off_every_hand_over_goes_through_the_store,
);

const WAIT: Duration = Duration::from_secs(30);

/// A request that waits in the local queue, behind a hold of the same process.
async fn wait_in_queue(
    client: &LockClient,
    request: lock_runtime::Lock,
) -> JoinHandle<Result<Guard, LockError>> {
    let before = client.health().await.unwrap().waiting;
    let waiter = tokio::spawn(request.wait(WAIT).acquire());
    eventually("it waits", async || {
        client.health().await.unwrap().waiting == before + 1
    })
    .await;
    waiter
}

/// A client that allows long runs of hand-offs, so that nothing here depends on the machine's
/// speed.
async fn patient(store: &Backend) -> LockClient {
    let builder = store.builder().local_tenure(64, Duration::from_secs(60));
    builder.connect().await.unwrap()
}

/// Checks that this client gets the key without a wait.
async fn is_free_for(client: &LockClient) {
    let request = client.lock("k").wait(Duration::ZERO);
    request.run(async {}).await.unwrap();
}

/// The owner of the key in the store. Only a single Redis can be asked.
async fn owner(store: &Backend) -> Option<String> {
    match store.server_of("lock:k").await {
        Some(server) => server.query(&["GET", "lock:k"]).await,
        None => None,
    }
}

async fn tasks_of_one_process_hand_a_hold_off_without_the_store(store: Backend) {
    let client = patient(&store).await;
    let first = client.lock("k").acquire().await.unwrap();
    let before = owner(&store).await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(wait_in_queue(&client, client.lock("k")).await);
    }
    first.release().await.unwrap();
    for waiter in waiting {
        let guard = waiter.await.unwrap().unwrap();
        assert!(guard.is_held());
        assert_eq!(owner(&store).await, before, "the store was not asked");
        assert!(client.lock("k").try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
    }
    assert_eq!(client.inspect("k").await.unwrap().holder, None);
    drop(client);
    store.until_empty().await;
}

async fn other_processes_have_their_turn(store: Backend) {
    let builder = store.builder().local_tenure(64, Duration::from_millis(10));
    let (busy, other) = (builder.connect().await.unwrap(), store.client().await);
    let (stop, inside) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let (busy, stop, inside) = (busy.clone(), stop.clone(), inside.clone());
        tasks.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let body = async {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                };
                busy.lock("k").wait(WAIT).run(body).await.unwrap();
            }
        });
    }
    for _ in 0..50 {
        let body = async {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        other.lock("k").wait(WAIT).run(body).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    drop((busy, other));
    store.until_empty().await;
}

async fn a_turn_ends_at_the_limit_of_hand_offs(store: Backend) {
    let builder = store.builder().local_tenure(3, Duration::from_secs(60));
    let (few, other) = (builder.connect().await.unwrap(), store.client().await);
    let first = few.lock("k").acquire().await.unwrap();
    let before = owner(&store).await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(wait_in_queue(&few, few.lock("k")).await);
    }
    // Another client stands in the store's queue all the time.
    let others = tokio::spawn(other.lock("k").wait(WAIT).acquire());
    eventually("it queues", async || {
        other.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    first.release().await.unwrap();
    let mut waiting = waiting.into_iter();
    for _ in 0..3 {
        let guard = waiting.next().unwrap().await.unwrap().unwrap();
        assert_eq!(owner(&store).await, before);
        assert!(!others.is_finished());
        guard.release().await.unwrap();
    }
    let guard = others.await.unwrap().unwrap();
    assert!(
        guard.is_held(),
        "after three hand-offs it is the other's turn"
    );
    eventually(
        "the next one of the first stands in the queue",
        async || other.inspect("k").await.unwrap().waiting == 1,
    )
    .await;
    guard.release().await.unwrap();
    for waiter in waiting {
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
    // Without a waiter the turn goes on, with a hold of its own.
    let first = few.lock("k").acquire().await.unwrap();
    let before = owner(&store).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(wait_in_queue(&few, few.lock("k")).await);
    }
    first.release().await.unwrap();
    let last = waiting.pop().unwrap();
    for waiter in waiting {
        waiter.await.unwrap().unwrap().release().await.unwrap();
    }
    let guard = last.await.unwrap().unwrap();
    let after = owner(&store).await;
    assert!(after.is_none() || after != before);
    drop(guard);
    drop((few, other));
    store.until_empty().await;
}

async fn tokens_rise_and_are_unique_over_all_hand_offs(store: Backend) {
    let (a, b) = (patient(&store).await, store.client().await);
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for task in 0..12 {
        let client = if task < 9 { a.clone() } else { b.clone() };
        let tokens = tokens.clone();
        tasks.spawn(async move {
            for _ in 0..20 {
                // An unfenced task in between has no token of its own. A nested request fetches
                // one.
                let request = client.lock("k").wait(WAIT);
                let unfenced = task % 4 == 1;
                let request = if unfenced { request } else { request.fenced() };
                let guard = request.acquire().await.unwrap();
                let token = if unfenced {
                    assert_eq!(guard.fencing_token(), None);
                    let nested = guard.scope(client.lock("k").fenced().acquire()).await;
                    nested.unwrap().fencing_token()
                } else {
                    guard.fencing_token()
                };
                tokens.lock().unwrap().push(token.unwrap());
                guard.release().await.unwrap();
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let tokens = tokens.lock().unwrap();
    assert_eq!(tokens.len(), 240);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

async fn a_fair_request_is_not_passed_by(store: Backend) {
    let (a, b) = (patient(&store).await, store.client().await);
    let first = a.lock("k").acquire().await.unwrap();
    let others = tokio::spawn(b.lock("k").fair().wait(WAIT).acquire());
    eventually("it queues", async || {
        b.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    let fair = wait_in_queue(&a, a.lock("k").fair()).await;
    eventually("it queues", async || {
        b.inspect("k").await.unwrap().waiting == 2
    })
    .await;
    let behind = wait_in_queue(&a, a.lock("k")).await;
    first.release().await.unwrap();
    let guard = others.await.unwrap().unwrap();
    assert!(!fair.is_finished() && !behind.is_finished());
    guard.release().await.unwrap();
    let guard = fair.await.unwrap().unwrap();
    assert!(!behind.is_finished());
    guard.release().await.unwrap();
    behind.await.unwrap().unwrap().release().await.unwrap();
}

async fn a_hold_passed_to_a_dropped_request_goes_to_the_next(store: Backend) {
    let client = patient(&store).await;
    for polls in 1..6 {
        for last in [false, true] {
            let first = client.lock("k").acquire().await.unwrap();
            let mut dropped = Box::pin(client.lock("k").wait(WAIT).acquire());
            assert!(polled(1, &mut dropped).await.is_none());
            let next = if last {
                None
            } else {
                Some(wait_in_queue(&client, client.lock("k")).await)
            };
            first.release().await.unwrap();
            // It may have the hold now, or be about to get it.
            drop(polled(polls - 1, &mut dropped).await);
            drop(dropped);
            if let Some(next) = next {
                next.await.unwrap().unwrap().release().await.unwrap();
            }
            // Sooner than by the end of a lease of 30 s.
            client.lock("k").wait(WAIT / 3).run(async {}).await.unwrap();
            store.until_empty().await;
            assert_eq!(client.health().await.unwrap().waiting, 0);
        }
    }
}

async fn a_passed_hold_lives_as_long_as_its_own_lease_and_no_longer(store: Backend) {
    let client = patient(&store).await;
    let short = Duration::from_secs(3);
    // A request with a shorter lease asks the store for a lease of its own, so that a crash costs
    // no more than that.
    let first = client.lock("k").acquire().await.unwrap();
    let waiter = wait_in_queue(&client, client.lock("k").lease(short)).await;
    first.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert!(guard.remaining() <= short);
    let left = client.inspect("k").await.unwrap().remaining;
    assert!(left <= Some(short), "{left:?}");
    // A request with a longer lease does so as well.
    let waiter = wait_in_queue(&client, client.lock("k").lease(20 * short)).await;
    guard.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    eventually("it has the whole of its lease", async || {
        guard.remaining() > 18 * short
    })
    .await;
    guard.release().await.unwrap();
    // The same lease, not renewed, and half over when the hold is handed off.
    let first = client.lock("k").lease(2 * short).acquire().await.unwrap();
    let waiter = wait_in_queue(&client, client.lock("k").lease(2 * short)).await;
    tokio::time::sleep(short / 2).await;
    first.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    eventually("it has the rest", async || {
        guard.remaining() > short + short / 2
    })
    .await;
    tokio::time::sleep(short).await;
    assert!(guard.is_held());
    guard.lost().await;
    assert!(matches!(
        guard.release().await,
        Err(LockError::Lost {
            reason: LostReason::Expired,
            ..
        })
    ));
    drop(client);
    store.until_empty().await;
}

async fn a_lost_hold_is_not_handed_off(store: Backend) {
    let client = patient(&store).await;
    let lease = Duration::from_millis(1500);
    for released in [true, false] {
        let first = client.lock("k").lease(lease).acquire().await.unwrap();
        let waiter = wait_in_queue(&client, client.lock("k").lease(20 * lease)).await;
        first.lost().await;
        if released {
            assert!(matches!(first.release().await, Err(LockError::Lost { .. })));
        } else {
            drop(first);
        }
        let guard = waiter.await.unwrap().unwrap();
        assert!(guard.remaining() > lease, "it is a new one");
        assert!(client.inspect("k").await.unwrap().holder.is_some());
        guard.release().await.unwrap();
    }
    // If an operator takes the hold away, the next task loses it too, as soon as the store is
    // asked.
    let first = client.lock("k").acquire().await.unwrap();
    let waiter = wait_in_queue(&client, client.lock("k").lease(lease).renew(true)).await;
    assert!(client.force_release("k").await.unwrap());
    drop(first);
    let guard = waiter.await.unwrap().unwrap();
    eventually("the store knows it, or it is lost", async || {
        client.inspect("k").await.unwrap().holder.is_some() || !guard.is_held()
    })
    .await;
}

async fn a_kept_key_is_not_handed_off(store: Backend) {
    let client = patient(&store).await;
    let keep = Duration::from_millis(600);
    let first = client
        .lock("k")
        .hold_at_least(keep)
        .acquire()
        .await
        .unwrap();
    let started = std::time::Instant::now();
    let waiter = wait_in_queue(&client, client.lock("k")).await;
    first.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    assert!(
        started.elapsed() >= keep - Duration::from_millis(20),
        "{:?}",
        started.elapsed()
    );
}

async fn a_passed_hold_is_renewed_and_lost_as_any_other(store: Backend) {
    let (client, other) = (patient(&store).await, store.client().await);
    let lease = store.renewable(RENEWED);
    let first = client
        .lock("k")
        .lease(lease)
        .renew(true)
        .acquire()
        .await
        .unwrap();
    let waiter = wait_in_queue(&client, client.lock("k").lease(lease).renew(true)).await;
    first.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    tokio::time::sleep(lease * 4 / 3).await;
    assert!(guard.is_held() && other.inspect("k").await.unwrap().holder.is_some());
    assert_eq!(client.health().await.unwrap().held, 1);
    assert!(other.force_release("k").await.unwrap());
    guard.lost().await;
    assert!(matches!(
        guard.release().await,
        Err(LockError::Lost {
            reason: LostReason::Gone,
            ..
        })
    ));
    is_free_for(&other).await;
}

async fn a_panic_passes_the_hold_on(store: Backend) {
    let client = patient(&store).await;
    let (inside, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let panics = {
        let (inside, goes_on) = (inside.clone(), goes_on.clone());
        tokio::spawn(client.lock("k").run(async move {
            inside.notify_one();
            goes_on.notified().await;
            panic!("as it was asked to");
        }))
    };
    // Not as soon as the store has the holder: the request may still count as waiting.
    inside.notified().await;
    let waiter = wait_in_queue(&client, client.lock("k")).await;
    goes_on.notify_one();
    assert!(panics.await.unwrap_err().is_panic());
    waiter.await.unwrap().unwrap().release().await.unwrap();
    store.until_empty().await;
}

async fn a_shutdown_ends_a_hold_that_is_handed_off(store: Backend) {
    for _ in 0..20 {
        let client = patient(&store).await;
        let first = client.lock("k").acquire().await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(wait_in_queue(&client, client.lock("k")).await);
        }
        let closing = tokio::spawn({
            let client = client.clone();
            async move { client.shutdown(Duration::from_millis(20)).await }
        });
        drop(first);
        for waiter in waiting {
            match waiter.await.unwrap() {
                Ok(guard) => drop(guard),
                Err(LockError::Shutdown) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        closing.await.unwrap();
        store.until_empty().await;
    }
}

async fn turned_off_every_hand_over_goes_through_the_store(store: Backend) {
    let builder = store.builder().local_tenure(0, Duration::from_secs(60));
    let client = builder.connect().await.unwrap();
    let first = client.lock("k").acquire().await.unwrap();
    let before = owner(&store).await;
    let waiter = wait_in_queue(&client, client.lock("k")).await;
    first.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    let after = owner(&store).await;
    assert!(after.is_none() || after != before);
    guard.release().await.unwrap();
    drop(client);
    store.until_empty().await;
}

async fn holds_dropped_at_once_are_never_left_without_an_owner(store: Backend) {
    let client = patient(&store).await;
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let client = client.clone();
        tasks.spawn(async move {
            for _ in 0..700 {
                // A key without an owner would stay busy until the end of its lease.
                drop(client.lock("k").wait(WAIT / 2).acquire().await.unwrap());
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    drop(client);
    store.until_empty().await;
}

async fn a_request_inside_a_hold_that_has_ended_is_refused(store: Backend) {
    let client = patient(&store).await;
    let nested = client
        .lock("k")
        .run(client.lock("k").acquire())
        .await
        .unwrap()
        .unwrap();
    let successor = client.lock("k").fenced().acquire().await.unwrap();
    for request in [client.lock("k"), client.lock("k").fenced()] {
        let result = nested.scope(request.acquire()).await;
        assert!(
            matches!(
                result,
                Err(LockError::Lost {
                    reason: LostReason::OuterEnded,
                    ..
                })
            ),
            "{result:?}"
        );
    }
    assert!(successor.is_held());
}

async fn a_request_that_is_not_polled_is_skipped(store: Backend) {
    let (client, other) = (patient(&store).await, store.client().await);
    let first = client.lock("k").acquire().await.unwrap();
    let mut asleep = Box::pin(client.lock("k").wait(WAIT).acquire());
    assert!(polled(1, &mut asleep).await.is_none());
    let behind = wait_in_queue(&client, client.lock("k")).await;
    let others = tokio::spawn(other.lock("k").wait(WAIT).acquire());
    eventually("it queues", async || {
        other.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    first.release().await.unwrap();
    // Long before the lease of 30 s ends, and in either order.
    let both = async {
        let behind = async { behind.await.unwrap().unwrap().release().await.unwrap() };
        let others = async { others.await.unwrap().unwrap().release().await.unwrap() };
        tokio::join!(behind, others);
    };
    tokio::time::timeout(WAIT / 3, both).await.unwrap();
    // The sleeper goes on from the end.
    let guard = tokio::time::timeout(WAIT / 3, asleep)
        .await
        .unwrap()
        .unwrap();
    assert!(guard.is_held());
    guard.release().await.unwrap();
    drop((client, other));
    store.until_empty().await;
}

/// The store hands the lock over to a request that is no longer polled.
async fn an_unpolled_request_that_has_asked_the_store_is_skipped(store: Backend) {
    let (client, other) = (patient(&store).await, store.client().await);
    let held = other.lock("k").acquire().await.unwrap();
    let mut asleep = Box::pin(client.lock("k").wait(WAIT).acquire());
    let queued = eventually("it stands in the store's queue", async || {
        other.inspect("k").await.unwrap().waiting == 1
    });
    tokio::select! {
        answer = &mut asleep => panic!("{answer:?}"),
        () = queued => {}
    }
    let behind = wait_in_queue(&client, client.lock("k")).await;
    let far_behind = wait_in_queue(&client, client.lock("k")).await;
    held.release().await.unwrap();
    for next in [behind, far_behind] {
        let guard = tokio::time::timeout(WAIT / 3, next).await.unwrap();
        guard.unwrap().unwrap().release().await.unwrap();
    }
    // Its grant was given back, and it goes on from the end.
    other.lock("k").wait(WAIT / 3).run(async {}).await.unwrap();
    let guard = tokio::time::timeout(WAIT / 3, asleep).await.unwrap();
    assert!(guard.as_ref().unwrap().is_held());
    guard.unwrap().release().await.unwrap();
    drop((client, other));
    store.until_empty().await;
}

/// Also for a fenced request. Its place has another name.
async fn a_request_that_is_skipped_has_no_place_in_the_store(store: Backend) {
    for fenced in [false, true] {
        let (client, other) = (patient(&store).await, store.client().await);
        let held = other.lock("k").acquire().await.unwrap();
        let request = client.lock("k").wait(WAIT);
        let request = if fenced { request.fenced() } else { request };
        let mut asleep = Box::pin(request.acquire());
        let places = async |places: usize| {
            eventually("all places are in the store's queue", async || {
                other.inspect("k").await.unwrap().waiting == places
            })
            .await;
        };
        // It is not polled again once its place exists, not even for the reply that says so.
        while other.inspect("k").await.unwrap().waiting == 0 {
            assert!(polled(1, &mut asleep).await.is_none());
        }
        places(0).await;
        held.release().await.unwrap();
        is_free_for(&other).await;
        drop((asleep, client, other));
        store.until_empty().await;
    }
}

async fn a_request_that_wakes_before_its_successor_takes_nothing_from_it(store: Backend) {
    let (client, other) = (patient(&store).await, store.client().await);
    let first = client.lock("k").acquire().await.unwrap();
    let request = |lease| Box::pin(client.lock("k").lease(lease).wait(WAIT).acquire());
    // The second has another lease than the hold that is handed off, so it must ask the store.
    let (mut asleep, mut behind) = (request(WAIT), request(WAIT / 2));
    assert!(polled(1, &mut asleep).await.is_none());
    assert!(polled(1, &mut behind).await.is_none());
    first.release().await.unwrap();
    // After a second, the second request gets what was handed off to the first, for another second.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let early = polled(1, &mut asleep).await;
    let both = async {
        let asleep = async {
            let guard = match early {
                Some(guard) => guard,
                None => asleep.await,
            };
            guard.unwrap().release().await.unwrap();
        };
        let behind = async { behind.await.unwrap().release().await.unwrap() };
        tokio::join!(behind, asleep);
    };
    tokio::time::timeout(WAIT / 3, both).await.unwrap();
    other.lock("k").wait(WAIT / 3).run(async {}).await.unwrap();
    drop((client, other));
    store.until_empty().await;
}

async fn a_shutdown_ends_a_hand_off_to_a_request_that_is_not_polled(store: Backend) {
    let (client, other) = (patient(&store).await, store.client().await);
    let first = client.lock("k").acquire().await.unwrap();
    let mut asleep = Box::pin(client.lock("k").wait(WAIT).acquire());
    assert!(polled(1, &mut asleep).await.is_none());
    first.release().await.unwrap();
    client.shutdown(Duration::ZERO).await;
    is_free_for(&other).await;
    drop(asleep);
    store.until_empty().await;
}
