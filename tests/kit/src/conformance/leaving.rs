//! Nested calls that leave the body in which they began: their hold is over with the outer one.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::{Backend, eventually, polled};
use lock_runtime::{Guard, Lock, LockClient, LockError, LostReason, OnLost, distributed_lock};
use tokio::sync::Notify;

super::on_every_store!(
    a_nested_body_kept_beyond_its_outer_body_is_stopped,
    an_annotated_call_kept_beyond_its_caller_is_stopped,
    a_nested_guard_kept_beyond_its_outer_body_is_lost,
    the_guard_of_a_nested_guard_is_lost_with_either,
    a_nested_guard_outlives_a_scope_and_not_its_guard,
    a_nested_request_that_waits_beyond_its_outer_body_is_lost,
    a_nested_guard_is_not_held_because_its_successor_is,
    a_body_that_panics_or_is_dropped_ends_what_it_lent,
    a_hold_is_released_after_the_poll_of_a_lent_body,
    lent_bodies_on_other_threads_never_run_beside_the_next_holder,
    a_nested_body_may_end_its_outer_guard_while_it_is_polled,
    a_nested_guard_in_another_task_is_lost_with_its_outer_body,
    a_kept_body_of_another_lock_asks_for_the_outer_key_as_others_do,
);

super::without_a_queue!(
    a_nested_body_kept_beyond_its_outer_body_is_stopped,
    an_annotated_call_kept_beyond_its_caller_is_stopped,
    a_nested_guard_kept_beyond_its_outer_body_is_lost,
    the_guard_of_a_nested_guard_is_lost_with_either,
    a_nested_guard_outlives_a_scope_and_not_its_guard,
    a_nested_request_that_waits_beyond_its_outer_body_is_lost,
    a_nested_guard_is_not_held_because_its_successor_is,
    a_body_that_panics_or_is_dropped_ends_what_it_lent,
    a_hold_is_released_after_the_poll_of_a_lent_body,
    lent_bodies_on_other_threads_never_run_beside_the_next_holder,
    a_nested_body_may_end_its_outer_guard_while_it_is_polled,
    a_nested_guard_in_another_task_is_lost_with_its_outer_body,
    a_kept_body_of_another_lock_asks_for_the_outer_key_as_others_do,
);

const WAIT: Duration = Duration::from_secs(20);

type Kept<T> = Pin<Box<dyn Future<Output = Result<T, LockError>> + Send>>;

fn outlived<T>(result: &Result<T, LockError>) -> bool {
    let reason = LostReason::OuterEnded;
    matches!(result, Err(LockError::Lost { reason: why, .. }) if *why == reason)
}

/// Requests of each kind that the store has: the outer one, and one that can share its hold.
fn kinds(store: &Backend, client: &LockClient) -> Vec<(Lock, Lock)> {
    let exclusive = |fenced| match fenced {
        true => client.lock("k").fenced(),
        false => client.lock("k"),
    };
    let several = || client.multi_lock(["k", "l"]);
    let mut kinds = vec![
        (exclusive(false), exclusive(false)),
        (several(), several()),
        (several(), exclusive(false)),
    ];
    let has = |wish| store.capabilities().refusal(wish).is_none();
    if has(lock_store::Wish::Fencing) {
        kinds.push((exclusive(false), exclusive(true)));
    }
    if has(lock_store::Wish::Shares) {
        let (rw, permits) = (client.rw_lock("rw"), client.semaphore("sem", 3));
        kinds.extend([
            (rw.write(), rw.write()),
            (rw.write(), rw.read()),
            (rw.read(), rw.read()),
            (permits.permits(2), permits.permit()),
        ]);
    }
    kinds
}

/// A nested body that begins in an outer body and never ends, and a flag that says whether it runs
/// on.
async fn begun(outer: Lock, nested: Lock) -> (Kept<()>, Arc<Notify>, Arc<AtomicBool>) {
    let (goes_on, ran_on) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (woken, noted) = (Arc::clone(&goes_on), Arc::clone(&ran_on));
    let (kept,) = outer
        .wait(WAIT)
        .run(async move {
            let (begins, begun) = tokio::sync::oneshot::channel();
            let body = async move {
                let _ = begins.send(());
                woken.notified().await;
                noted.store(true, Ordering::SeqCst);
            };
            let mut nested: Kept<()> = Box::pin(nested.wait(WAIT).run(body));
            tokio::select! {
                biased;
                ended = &mut nested => panic!("{ended:?}"),
                begun = begun => begun.unwrap(),
            }
            (nested,)
        })
        .await
        .unwrap();
    (kept, goes_on, ran_on)
}

async fn a_nested_body_kept_beyond_its_outer_body_is_stopped(store: Backend) {
    let client = store.client().await;
    for (outer, nested) in kinds(&store, &client) {
        let (kept, goes_on, ran_on) = begun(outer.clone(), nested.clone()).await;
        goes_on.notify_one();
        let result = kept.await;
        assert!(outlived(&result), "{nested:?}: {result:?}");
        assert!(!ran_on.load(Ordering::SeqCst), "{nested:?}");
        // A body that goes on after a loss goes on here as well.
        let (kept, goes_on, ran_on) = begun(outer.clone(), nested.on_lost(OnLost::Continue)).await;
        goes_on.notify_one();
        kept.await.unwrap();
        assert!(ran_on.load(Ordering::SeqCst));
        outer.wait(WAIT).run(async {}).await.unwrap();
    }
}

#[distributed_lock(key = "k", client = &client)]
async fn inner(client: LockClient, goes_on: Arc<Notify>) -> Result<(), LockError> {
    goes_on.notified().await;
    Ok(())
}

#[distributed_lock(key = "k", client = client)]
async fn outer(client: &LockClient, goes_on: &Arc<Notify>) -> Result<Kept<()>, LockError> {
    let mut slow: Kept<()> = Box::pin(inner(client.clone(), Arc::clone(goes_on)));
    assert!(polled(1, &mut slow).await.is_none());
    Ok(slow)
}

async fn an_annotated_call_kept_beyond_its_caller_is_stopped(store: Backend) {
    let (client, goes_on) = (store.client().await, Arc::new(Notify::new()));
    let kept = outer(&client, &goes_on).await.unwrap();
    let another = client.lock("k").wait(WAIT).acquire().await.unwrap();
    goes_on.notify_one();
    let result = kept.await;
    assert!(outlived(&result), "{result:?}");
    assert!(another.is_held());
}

async fn is_lost(guard: Guard) {
    assert!(!guard.is_held() && guard.remaining().is_zero());
    tokio::time::timeout(WAIT, guard.lost()).await.unwrap();
    let extended = guard.extend(WAIT).await;
    assert!(outlived(&extended), "{extended:?}");
    let released = guard.release().await;
    assert!(outlived(&released), "{released:?}");
}

async fn a_nested_guard_kept_beyond_its_outer_body_is_lost(store: Backend) {
    let client = store.client().await;
    for (outer, nested) in kinds(&store, &client) {
        let kept = outer.clone().wait(WAIT).run(nested.acquire()).await;
        let kept = kept.unwrap().unwrap();
        let inside = kept.scope(client.lock(kept.key().clone()).acquire()).await;
        assert!(inside.is_err(), "it shares what is over");
        is_lost(kept).await;
        // Lost while somebody waits for that.
        let guard = outer.clone().wait(WAIT).acquire().await.unwrap();
        let kept = guard.scope(nested_of(&outer).acquire()).await.unwrap();
        let (released, ()) = tokio::join!(guard.release(), kept.lost());
        released.unwrap();
        is_lost(kept).await;
    }
}

/// The same request again, as a nested one.
fn nested_of(outer: &Lock) -> Lock {
    outer.clone().wait(WAIT)
}

async fn the_guard_of_a_nested_guard_is_lost_with_either(store: Backend) {
    let client = store.client().await;
    let nest = async |guard: &Guard| guard.scope(client.lock("k").acquire()).await.unwrap();
    let outer = client.lock("k").acquire().await.unwrap();
    let middle = nest(&outer).await;
    let inner = nest(&middle).await;
    assert!(outer.is_held() && middle.is_held() && inner.is_held());
    drop(middle);
    assert!(outer.is_held());
    is_lost(inner).await;
    let middle = nest(&outer).await;
    let inner = nest(&middle).await;
    drop(outer);
    is_lost(inner).await;
    is_lost(middle).await;
}

async fn a_nested_guard_outlives_a_scope_and_not_its_guard(store: Backend) {
    let client = store.client().await;
    let outer = client.lock("k").acquire().await.unwrap();
    let nested = outer.scope(client.lock("k").acquire()).await.unwrap();
    assert!(nested.is_held());
    let second = outer.scope(client.lock("k").try_acquire()).await.unwrap();
    assert!(second.is_none(), "the first has it");
    // The hold of the outer guard is given back although it is lent.
    outer.release().await.unwrap();
    assert!(client.lock("k").try_acquire().await.unwrap().is_some());
    is_lost(nested).await;
}

async fn a_nested_request_that_waits_beyond_its_outer_body_is_lost(store: Backend) {
    let client = store.client().await;
    let nested = || -> Kept<Guard> { Box::pin(client.lock("k").wait(WAIT).acquire()) };
    let (first, waits) = client
        .lock("k")
        .run(async {
            let first = nested().await.unwrap();
            let mut waits = nested();
            assert!(polled(1, &mut waits).await.is_none());
            (first, waits)
        })
        .await
        .unwrap();
    // It is told at once, and not when the first gives its share back.
    let result = tokio::time::timeout(WAIT, waits).await.unwrap();
    assert!(outlived(&result), "{result:?}");
    is_lost(first).await;
}

/// The hold of the outer guard goes to the next task of this process, and not to the store.
async fn a_nested_guard_is_not_held_because_its_successor_is(store: Backend) {
    let builder = store.builder().local_tenure(64, Duration::from_secs(60));
    let client = builder.connect().await.unwrap();
    let outer = client.lock("k").acquire().await.unwrap();
    let nested = outer.scope(client.lock("k").acquire()).await.unwrap();
    let next = tokio::spawn(client.lock("k").wait(WAIT).acquire());
    eventually("it waits", async || {
        client.health().await.unwrap().waiting == 1
    })
    .await;
    outer.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert!(next.is_held());
    is_lost(nested).await;
    assert!(next.is_held());
}

async fn a_body_that_panics_or_is_dropped_ends_what_it_lent(store: Backend) {
    let client = store.client().await;
    for panics in [true, false] {
        let (send, kept) = mpsc::channel();
        let (client_, nested) = (client.clone(), client.lock("k").acquire());
        let outer = tokio::spawn(client_.lock("k").wait(WAIT).run(async move {
            send.send(nested.await.unwrap()).unwrap();
            if panics {
                std::panic::resume_unwind(Box::new("a panic in a body"));
            }
            std::future::pending::<()>().await;
        }));
        let mut kept = Some(kept);
        let mut nested = None;
        eventually("it has lent its hold", async || {
            nested = kept.as_ref().and_then(|kept| kept.try_recv().ok());
            nested.is_some() && kept.take().is_some()
        })
        .await;
        outer.abort();
        assert!(outer.await.is_err());
        is_lost(nested.unwrap()).await;
    }
}

/// A lent body that blocks its thread in a poll, and what ends that.
fn start_blocking(nested: Lock) -> (Kept<bool>, Arc<AtomicBool>, Arc<AtomicBool>) {
    let (inside, ends) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (runs, may_end) = (Arc::clone(&inside), Arc::clone(&ends));
    let body = async move {
        tokio::task::yield_now().await;
        runs.store(true, Ordering::SeqCst);
        while !may_end.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        runs.store(false, Ordering::SeqCst);
        true
    };
    (Box::pin(nested.run(body)), inside, ends)
}

async fn a_hold_is_released_after_the_poll_of_a_lent_body(store: Backend) {
    let client = store.client().await;
    for drops in [false, true] {
        let outer = client.lock("k").wait(WAIT).acquire().await.unwrap();
        let (mut body, inside, ends) = start_blocking(client.lock("k"));
        outer
            .scope(async { assert!(polled(1, &mut body).await.is_none()) })
            .await;
        let blocked = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(body)
        });
        eventually("it is polled", async || inside.load(Ordering::SeqCst)).await;
        let release = tokio::spawn(async move {
            match drops {
                true => drop(outer),
                false => outer.release().await.unwrap(),
            }
        });
        let next = client.lock("k").wait(Duration::from_millis(300)).acquire();
        assert!(next.await.is_err_and(|error| error.is_busy()));
        assert!(inside.load(Ordering::SeqCst));
        ends.store(true, Ordering::SeqCst);
        let next = client.lock("k").wait(WAIT).acquire().await.unwrap();
        assert!(!inside.load(Ordering::SeqCst));
        release.await.unwrap();
        assert!(
            blocked.join().unwrap().unwrap(),
            "its last poll was under the lock"
        );
        next.release().await.unwrap();
    }
}

async fn lent_bodies_on_other_threads_never_run_beside_the_next_holder(store: Backend) {
    let client = store.client().await;
    for round in 0..100_u32 {
        let is_next = Arc::new(AtomicBool::new(false));
        let outer = client.lock("k").wait(WAIT).acquire().await.unwrap();
        let (seen, nested) = (Arc::clone(&is_next), client.lock("k"));
        let mut body: Kept<()> = Box::pin(nested.run(async move {
            loop {
                tokio::task::yield_now().await;
                for _ in 0..200 {
                    assert!(!seen.load(Ordering::SeqCst), "the next holder is in");
                }
            }
        }));
        outer
            .scope(async { assert!(polled(1, &mut body).await.is_none()) })
            .await;
        let lent = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(body)
        });
        std::thread::sleep(Duration::from_micros(u64::from(round * 7 % 100)));
        match round % 2 {
            0 => drop(outer),
            _ => outer.release().await.unwrap(),
        }
        let next = client.lock("k").wait(WAIT).acquire().await.unwrap();
        is_next.store(true, Ordering::SeqCst);
        let result = lent.join().unwrap();
        assert!(outlived(&result), "{result:?}");
        next.release().await.unwrap();
    }
}

async fn a_nested_body_may_end_its_outer_guard_while_it_is_polled(store: Backend) {
    let client = store.client().await;
    for (drops, ends) in [(true, true), (true, false), (false, false)] {
        let outer = client.lock("k").wait(WAIT).acquire().await.unwrap();
        let nested = outer.scope(client.lock("k").acquire()).await.unwrap();
        let inner = nested.scope(async {
            client
                .lock("k")
                .run(async move {
                    match drops {
                        true => drop(outer),
                        false => outer.release().await.unwrap(),
                    }
                    if !ends {
                        tokio::task::yield_now().await;
                        panic!("it runs on without the lock");
                    }
                })
                .await
        });
        let result = tokio::time::timeout(WAIT, inner).await.unwrap();
        assert_eq!(result.is_ok(), ends, "{result:?}");
        assert!(ends || outlived(&result), "{result:?}");
        client.lock("k").wait(WAIT).run(async {}).await.unwrap();
        is_lost(nested).await;
    }
}

async fn a_nested_guard_in_another_task_is_lost_with_its_outer_body(store: Backend) {
    let client = store.client().await;
    let (task,) = client
        .lock("k")
        .run(async {
            let nested = client.lock("k").acquire().await.unwrap();
            let task = tokio::spawn(async move {
                nested.lost().await;
                nested
            });
            tokio::task::yield_now().await;
            assert!(!task.is_finished());
            (task,)
        })
        .await
        .unwrap();
    is_lost(tokio::time::timeout(WAIT, task).await.unwrap().unwrap()).await;
}

/// Its own lock does not end with the outer body, and it is no longer inside of that one.
async fn a_kept_body_of_another_lock_asks_for_the_outer_key_as_others_do(store: Backend) {
    let client = store.client().await;
    let (inner, goes_on) = (client.clone(), Arc::new(Notify::new()));
    let woken = Arc::clone(&goes_on);
    let (begins, begun) = tokio::sync::oneshot::channel();
    let (refused, was_refused) = tokio::sync::oneshot::channel();
    let mut kept = Box::pin(client.lock("other").wait(WAIT).run(async move {
        let nested = inner.lock("k").try_acquire().await.unwrap();
        let _ = begins.send(nested.is_some());
        drop(nested);
        woken.notified().await;
        let request = inner.lock("k").wait(Duration::from_millis(100)).acquire();
        let _ = refused.send(request.await.is_err_and(|error| error.is_busy()));
        inner.lock("k").wait(WAIT).acquire().await.unwrap()
    }));
    let shared = client.lock("k").run(async {
        tokio::select! {
            biased;
            _ = &mut kept => panic!("it has ended"),
            shared = begun => shared.unwrap(),
        }
    });
    assert!(shared.await.unwrap());
    let another = client.lock("k").wait(WAIT).acquire().await.unwrap();
    goes_on.notify_one();
    let (own, ()) = tokio::join!(kept, async {
        assert!(was_refused.await.unwrap() && another.is_held());
        another.release().await.unwrap();
    });
    let own = own.unwrap();
    assert!(own.is_held());
    own.release().await.unwrap();
}
