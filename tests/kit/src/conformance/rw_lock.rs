//! Many readers or one writer, in the order of arrival, over all clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::{Guard, KeyKind, Lock, LockClient, LockError, LostReason};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::RENEWED;
use crate::conformance::bodies::endless_body;

super::on_every_store!(
    readers_enter_together_and_a_writer_alone,
    readers_and_writers_of_several_clients_never_meet,
    a_waiting_writer_is_not_overtaken_by_later_readers,
    twenty_queued_readers_of_two_clients_enter_together_after_a_writer,
    writers_of_several_clients_are_served_in_arrival_order,
    a_dead_reader_vanishes_with_its_own_lease,
    a_live_reader_holds_a_writer_up_after_a_dead_one_has_vanished,
    a_writer_behind_a_dead_reader_enters_soon_after_the_last_live_one,
    a_writer_waits_for_the_longest_of_the_leases_of_dead_readers,
    readers_are_renewed_each_by_itself,
    a_waiting_writer_that_gives_up_or_is_dropped_lets_the_readers_behind_it_in_at_once,
    a_waiting_writer_whose_client_is_gone_holds_no_reader_up,
    read_and_write_inside_write_share_the_hold,
    write_inside_read_would_deadlock_at_once,
    nested_leases_neither_shorten_nor_add_up,
    siblings_inside_a_hold_read_side_by_side_and_write_alone,
    a_downgrade_lets_readers_in_and_no_writer_between,
    a_downgraded_hold_is_a_reader_for_nested_requests,
    only_the_guard_of_a_write_lock_is_downgraded_and_not_under_a_nested_writer,
    tokens_are_unique_and_rise_over_readers_and_writers,
    a_lost_reader_or_writer_is_cancelled,
    a_late_release_does_not_end_the_successors_hold,
    hold_at_least_keeps_out_the_same_kinds_as_the_hold,
    extend_prolongs_one_reader,
    an_operator_sees_the_holders_and_takes_all_of_them,
    other_kinds_of_locks_on_one_key_are_a_conflict,
    a_shutdown_ends_waiting_and_releases_what_is_held,
);

const WAIT: Duration = Duration::from_secs(60);

fn read(client: &LockClient) -> Lock {
    client.rw_lock("k").read().wait(WAIT)
}

fn write(client: &LockClient) -> Lock {
    client.rw_lock("k").write().wait(WAIT)
}

async fn waiting(client: &LockClient, places: usize) {
    eventually("all of them wait", async || {
        client.inspect("k").await.unwrap().waiting == places
    })
    .await;
}

async fn is_busy(request: Lock) -> bool {
    request.try_acquire().await.unwrap().is_none()
}

/// Starts to acquire. Returns when the request has the place number `place` in the store's queue.
async fn queued(
    watcher: &LockClient,
    request: Lock,
    place: usize,
) -> tokio::task::JoinHandle<Result<Guard, LockError>> {
    let waiter = tokio::spawn(request.acquire());
    waiting(watcher, place).await;
    waiter
}

async fn readers_enter_together_and_a_writer_alone(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let (one, two) = (
        read(&a).acquire().await.unwrap(),
        read(&b).acquire().await.unwrap(),
    );
    assert!(is_busy(write(&a)).await && is_busy(write(&b)).await);
    one.release().await.unwrap();
    assert!(is_busy(write(&a)).await, "only after both");
    two.release().await.unwrap();
    let writer = write(&a).acquire().await.unwrap();
    for request in [read(&a), read(&b), write(&a), write(&b)] {
        assert!(is_busy(request.clone()).await);
        let brief = Duration::from_millis(50);
        match request.wait(brief).acquire().await {
            Err(LockError::Busy { key, waited, .. }) => {
                assert_eq!(key.as_str(), "k");
                assert!(waited >= brief);
            }
            other => panic!("{other:?}"),
        }
    }
    let elsewhere = store.builder().namespace("other").connect().await.unwrap();
    assert!(!is_busy(write(&elsewhere)).await);
    assert!(!is_busy(b.rw_lock("other").write()).await);
    writer.release().await.unwrap();
    assert!(!is_busy(read(&b)).await);
    drop((a, b));
    store.until_empty().await;
}

async fn readers_and_writers_of_several_clients_never_meet(store: Backend) {
    // The number of readers inside, or -1 for a writer.
    let inside = Arc::new(AtomicI32::new(0));
    let together = Arc::new(AtomicI32::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let client = store.client().await;
        for task in 0..8 {
            let (client, inside, together) = (client.clone(), inside.clone(), together.clone());
            tasks.spawn(async move {
                for round in 0..15 {
                    if (task + round) % 4 == 0 {
                        let guard = write(&client).acquire().await.unwrap();
                        let alone =
                            inside.compare_exchange(0, -1, Ordering::SeqCst, Ordering::SeqCst);
                        assert_eq!(alone, Ok(0), "a writer met another holder");
                        tokio::task::yield_now().await;
                        inside.store(0, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    } else {
                        let body = async {
                            let readers = inside.fetch_add(1, Ordering::SeqCst) + 1;
                            assert!(readers > 0, "a reader met a writer");
                            together.fetch_max(readers, Ordering::SeqCst);
                            tokio::time::sleep(Duration::from_millis(1)).await;
                            inside.fetch_sub(1, Ordering::SeqCst);
                        };
                        read(&client).run(body).await.unwrap();
                    }
                }
            });
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert!(
        together.load(Ordering::SeqCst) > 1,
        "readers did read together"
    );
    store.until_empty().await;
}

async fn a_waiting_writer_is_not_overtaken_by_later_readers(store: Backend) {
    let (a, b, c) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let reader = read(&a).acquire().await.unwrap();
    let writer = queued(&a, write(&b), 1).await;
    assert!(is_busy(read(&a)).await && is_busy(read(&c)).await);
    let late = queued(&a, read(&c), 2).await;
    let same_client = queued(&a, read(&a), 3).await;
    // Longer than the fallback poll: looking again grants nothing.
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert!(!writer.is_finished() && !late.is_finished() && !same_client.is_finished());
    reader.release().await.unwrap();
    let writer = writer.await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!late.is_finished() && !same_client.is_finished());
    writer.release().await.unwrap();
    assert!(late.await.unwrap().unwrap().is_held());
    assert!(same_client.await.unwrap().unwrap().is_held());
}

async fn twenty_queued_readers_of_two_clients_enter_together_after_a_writer(store: Backend) {
    let (a, b, c) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    // Also after a wait for longer than a hand-over is trusted without asking.
    for pause in [Duration::ZERO, Duration::from_millis(2500)] {
        let writer = write(&a).acquire().await.unwrap();
        let all = Arc::new(Barrier::new(21));
        let mut readers = JoinSet::new();
        for number in 0..20 {
            let all = all.clone();
            let client = if number % 2 == 0 { &b } else { &c };
            // No reader leaves before all are in.
            readers.spawn(read(client).run(async move { _ = all.wait().await }));
        }
        waiting(&a, 20).await;
        tokio::time::sleep(pause).await;
        let released = Instant::now();
        writer.release().await.unwrap();
        all.wait().await;
        assert!(
            released.elapsed() < Duration::from_millis(900),
            "{:?}: not by a poll",
            released.elapsed()
        );
        while let Some(reader) = readers.join_next().await {
            reader.unwrap().unwrap();
        }
    }
    store.until_empty().await;
}

async fn writers_of_several_clients_are_served_in_arrival_order(store: Backend) {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(store.client().await);
    }
    let reader = read(&clients[0]).acquire().await.unwrap();
    let served = Arc::new(AtomicU32::new(0));
    let mut writers = JoinSet::new();
    for number in 0..16 {
        let (client, served) = (&clients[number % 4], served.clone());
        writers.spawn(write(client).run(async move {
            let turn = served.fetch_add(1, Ordering::SeqCst);
            assert_eq!(turn as usize, number);
        }));
        waiting(&clients[0], number + 1).await;
    }
    reader.release().await.unwrap();
    while let Some(writer) = writers.join_next().await {
        writer.unwrap().unwrap();
    }
}

/// Two readers: one that dies, and one that is renewed.
async fn dead_and_live(store: &Backend, lease: Duration) -> (Guard, Guard) {
    let (a, b) = (store.client().await, store.client().await);
    // It will be neither released nor renewed.
    let dead = read(&a).lease(lease).acquire().await.unwrap();
    let live = read(&b).lease(store.renewable(RENEWED)).renew(true);
    let live = live.acquire().await.unwrap();
    (dead, live)
}

/// Long enough for the others to come before it ends.
const OF_THE_DEAD: Duration = Duration::from_secs(3);

async fn a_dead_reader_vanishes_with_its_own_lease(store: Backend) {
    let watcher = store.client().await;
    let (dead, _live) = dead_and_live(&store, OF_THE_DEAD).await;
    assert_eq!(watcher.inspect("k").await.unwrap().holders, 2);
    dead.lost().await;
    eventually("it is no holder any more", async || {
        watcher.inspect("k").await.unwrap().holders == 1
    })
    .await;
    let released = dead.release().await;
    let is_expired = matches!(
        released,
        Err(LockError::Lost {
            reason: LostReason::Expired,
            ..
        })
    );
    assert!(is_expired, "{released:?}");
}

async fn a_live_reader_holds_a_writer_up_after_a_dead_one_has_vanished(store: Backend) {
    let c = store.client().await;
    let (dead, live) = dead_and_live(&store, OF_THE_DEAD).await;
    let writer = queued(&c, write(&c), 1).await;
    dead.lost().await;
    eventually("it is no holder any more", async || {
        c.inspect("k").await.unwrap().holders == 1
    })
    .await;
    // It renews only its own lease.
    tokio::time::sleep(store.renewable(RENEWED) * 4 / 3).await;
    assert!(live.is_held(), "it is renewed");
    assert!(!writer.is_finished(), "a reader is there");
    assert_eq!(c.inspect("k").await.unwrap().holders, 1);
}

async fn a_writer_behind_a_dead_reader_enters_soon_after_the_last_live_one(store: Backend) {
    let c = store.client().await;
    let (dead, live) = dead_and_live(&store, OF_THE_DEAD).await;
    let writer = queued(&c, write(&c), 1).await;
    dead.lost().await;
    eventually("it is no holder any more", async || {
        c.inspect("k").await.unwrap().holders == 1
    })
    .await;
    let released = Instant::now();
    live.release().await.unwrap();
    let writer = writer.await.unwrap().unwrap();
    let took = released.elapsed();
    assert!(took < Duration::from_millis(700), "{took:?}");
    assert!(writer.is_held());
}

async fn a_writer_waits_for_the_longest_of_the_leases_of_dead_readers(store: Backend) {
    let (a, b, c) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let lease = OF_THE_DEAD;
    let from = Instant::now();
    let shorter = read(&a).lease(lease / 3).acquire().await.unwrap();
    let longer = read(&b).lease(lease).acquire().await.unwrap();
    let writer = write(&c).acquire().await.unwrap();
    let took = from.elapsed();
    assert!(took >= lease, "{took:?}");
    assert!(took < lease + Duration::from_millis(800), "{took:?}");
    assert!(writer.is_held() && !shorter.is_held() && !longer.is_held());
}

async fn readers_are_renewed_each_by_itself(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let lease = store.renewable(RENEWED);
    let mut readers = Vec::new();
    for number in 0..50 {
        let client = if number % 2 == 0 { &a } else { &b };
        let request = read(client).lease(lease).renew(true);
        readers.push(request.acquire().await.unwrap());
    }
    // The first readers leave: their leases must not have carried the others.
    for reader in readers.drain(..20) {
        reader.release().await.unwrap();
    }
    tokio::time::sleep(lease * 4 / 3).await;
    assert!(readers.iter().all(Guard::is_held));
    assert_eq!(a.inspect("k").await.unwrap().holders, 30);
    assert!(is_busy(write(&a)).await);
    drop(readers);
    assert!(write(&a).acquire().await.unwrap().is_held());
}

async fn a_waiting_writer_that_gives_up_or_is_dropped_lets_the_readers_behind_it_in_at_once(
    store: Backend,
) {
    let (a, b, c) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let _reader = read(&a).acquire().await.unwrap();
    for gives_up in [true, false] {
        // Long enough for the readers to queue behind it.
        let wait = if gives_up {
            Duration::from_secs(3)
        } else {
            WAIT
        };
        let writer = queued(&a, write(&b).wait(wait), 1).await;
        let readers = [
            queued(&a, read(&b), 2).await,
            queued(&a, read(&c), 3).await,
            queued(&a, read(&c), 4).await,
        ];
        if gives_up {
            let result = writer.await.unwrap();
            assert!(matches!(result, Err(LockError::Busy { .. })), "{result:?}");
        } else {
            writer.abort();
        }
        let left = Instant::now();
        let mut guards = Vec::new();
        for reader in readers {
            guards.push(reader.await.unwrap().unwrap());
        }
        assert!(
            left.elapsed() < Duration::from_millis(700),
            "{:?}: not by a poll",
            left.elapsed()
        );
        for guard in guards {
            guard.release().await.unwrap();
        }
    }
}

async fn a_waiting_writer_whose_client_is_gone_holds_no_reader_up(store: Backend) {
    let (a, gone, c) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let _reader = read(&a).acquire().await.unwrap();
    let writer = queued(&a, write(&gone), 1).await;
    let late = queued(&a, read(&c), 2).await;
    writer.abort();
    drop(gone);
    let started = Instant::now();
    assert!(late.await.unwrap().unwrap().is_held());
    assert!(started.elapsed() < Duration::from_secs(2));
}

async fn read_and_write_inside_write_share_the_hold(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let lease = store.renewable(RENEWED);
    let outer = write(&a).lease(lease).renew(true).fenced();
    let outer = outer.acquire().await.unwrap();
    let nested = async {
        let reader = read(&a).fenced().acquire().await.unwrap();
        assert_eq!(reader.fencing_token(), outer.fencing_token());
        assert!(is_busy(read(&b)).await, "it is a writer's all the same");
        reader.release().await.unwrap();
        let writer = write(&a).acquire().await.unwrap();
        writer
            .scope(async {
                read(&a)
                    .run(async { assert!(is_busy(read(&b)).await) })
                    .await
            })
            .await
            .unwrap();
        drop(writer);
    };
    outer.scope(nested).await;
    // The end of the nested reader has not ended the outer writer's renewals.
    tokio::time::sleep(lease * 4 / 3).await;
    assert!(outer.is_held() && is_busy(read(&b)).await);
    assert_eq!(a.inspect("k").await.unwrap().holders, 1);
    outer.release().await.unwrap();
    store.until_empty().await;
}

async fn write_inside_read_would_deadlock_at_once(store: Backend) {
    let client = store.client().await;
    let started = Instant::now();
    let nested = async {
        let mut found = Vec::new();
        for request in [
            write(&client).wait_forever(),
            write(&client).wait(Duration::ZERO),
            write(&client),
        ] {
            found.push(request.acquire().await);
        }
        // Deeper down as well.
        found.push(read(&client).run(write(&client).acquire()).await.unwrap());
        found
    };
    let mut found = read(&client).run(nested).await.unwrap();
    // Nor inside of a reader that is one of several inside of a writer.
    let deeper = async {
        let nested = async {
            let reads = read(&client).run(write(&client).acquire());
            [write(&client).acquire().await, reads.await.unwrap()]
        };
        read(&client).run(nested).await.unwrap()
    };
    found.extend(write(&client).run(deeper).await.unwrap());
    for result in found {
        match result {
            Err(LockError::WouldDeadlock { key, .. }) => assert_eq!(key.as_str(), "k"),
            other => panic!("{other:?}"),
        }
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    let no_reader = read(&client).reentrant(false).wait_forever();
    let nested = read(&client).run(no_reader.acquire()).await.unwrap();
    assert!(matches!(nested, Err(LockError::WouldDeadlock { .. })));
    store.until_empty().await;
}

async fn nested_leases_neither_shorten_nor_add_up(store: Backend) {
    let client = store.client().await;
    let lease = Duration::from_secs(20);
    for outer in [read(&client), write(&client)] {
        let outer = outer.lease(lease).acquire().await.unwrap();
        let nested = async {
            for brief in [Duration::from_millis(10), lease, 2 * lease] {
                read(&client).lease(brief).run(async {}).await.unwrap();
            }
        };
        outer.scope(nested).await;
        for left in [
            outer.remaining(),
            client.inspect("k").await.unwrap().remaining.unwrap(),
        ] {
            assert!(
                left > Duration::from_secs(10) && left <= lease,
                "{left:?} of {lease:?}"
            );
        }
        outer.release().await.unwrap();
    }
}

async fn siblings_inside_a_hold_read_side_by_side_and_write_alone(store: Backend) {
    let client = store.client().await;
    let inside = AtomicI32::new(0);
    let both = Barrier::new(2);
    // Each waits for the other inside, so this ends only if both read at once.
    let reader = || read(&client).run(async { _ = both.wait().await });
    for outer in [read(&client), write(&client)] {
        let siblings = async { tokio::join!(reader(), reader()) };
        let (one, two) = outer.run(siblings).await.unwrap();
        one.and(two).unwrap();
    }
    let writer = || {
        write(&client).run(async {
            assert_eq!(inside.fetch_sub(100, Ordering::SeqCst), 0, "not alone");
            tokio::time::sleep(Duration::from_millis(10)).await;
            inside.fetch_add(100, Ordering::SeqCst);
        })
    };
    let reader = || {
        read(&client).run(async {
            assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0, "with a writer");
            tokio::time::sleep(Duration::from_millis(10)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
        })
    };
    let siblings = async { tokio::join!(reader(), writer(), reader(), writer(), reader()) };
    let all = write(&client).run(siblings).await.unwrap();
    all.0.and(all.1).and(all.2).and(all.3).and(all.4).unwrap();
    // While a sibling writes, the other's `wait` counts.
    let outer = write(&client).acquire().await.unwrap();
    outer
        .scope(async {
            let first = write(&client).acquire().await.unwrap();
            assert!(is_busy(read(&client)).await && is_busy(write(&client)).await);
            drop(first);
            let first = read(&client).acquire().await.unwrap();
            assert!(is_busy(write(&client)).await && !is_busy(read(&client)).await);
            drop(first);
        })
        .await;
}

async fn a_downgrade_lets_readers_in_and_no_writer_between(store: Backend) {
    let (a, b, c) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let lease = store.renewable(RENEWED);
    let guard = write(&a).lease(lease).renew(true).fenced();
    let guard = guard.acquire().await.unwrap();
    let token = guard.fencing_token();
    let reader = queued(&a, read(&b), 1).await;
    let writer = queued(&a, write(&c), 2).await;
    let behind = queued(&a, read(&b), 3).await;
    let started = Instant::now();
    guard.downgrade().await.unwrap();
    let reader = reader.await.unwrap().unwrap();
    assert!(
        started.elapsed() < Duration::from_millis(700),
        "told, not found by a poll"
    );
    // It is renewed as a reader, for longer than its lease.
    tokio::time::sleep(lease + lease / 3).await;
    assert!(guard.is_held() && reader.is_held());
    assert_eq!(guard.fencing_token(), token);
    assert!(!writer.is_finished() && !behind.is_finished());
    guard.downgrade().await.unwrap();
    reader.release().await.unwrap();
    assert!(is_busy(write(&a)).await);
    guard.release().await.unwrap();
    let writer = writer.await.unwrap().unwrap();
    assert!(!behind.is_finished());
    writer.release().await.unwrap();
    behind.await.unwrap().unwrap().release().await.unwrap();
    store.until_empty().await;
}

async fn a_downgraded_hold_is_a_reader_for_nested_requests(store: Backend) {
    let client = store.client().await;
    let outer = write(&client).acquire().await.unwrap();
    outer
        .scope(async {
            // The nested writer waits for its turn, and finds that no writer is possible any more.
            let reader = read(&client).acquire().await.unwrap();
            outer.downgrade().await.unwrap();
            let refused = write(&client).acquire().await;
            assert!(matches!(refused, Err(LockError::WouldDeadlock { .. })));
            assert!(!is_busy(read(&client)).await);
            drop(reader);
        })
        .await;
    outer.release().await.unwrap();
    store.until_empty().await;
}

async fn only_the_guard_of_a_write_lock_is_downgraded_and_not_under_a_nested_writer(
    store: Backend,
) {
    let client = store.client().await;
    let refused = |result: Result<(), LockError>| {
        assert!(
            matches!(result, Err(LockError::Config { .. })),
            "{result:?}"
        );
    };
    for other in [client.lock("x"), client.semaphore("x", 3).permit()] {
        let guard = other.acquire().await.unwrap();
        refused(guard.downgrade().await);
        assert!(guard.is_held());
        guard.release().await.unwrap();
    }
    let outer = write(&client).acquire().await.unwrap();
    outer
        .scope(async {
            let nested = write(&client).acquire().await.unwrap();
            refused(nested.downgrade().await);
            // This would let readers in beside a body that writes.
            refused(outer.downgrade().await);
            let others = store.client().await;
            assert!(is_busy(read(&others)).await);
            nested.release().await.unwrap();
            outer.downgrade().await.unwrap();
            assert!(!is_busy(read(&others)).await);
        })
        .await;
    let lost = write(&client).lease(Duration::from_millis(20));
    drop(outer);
    let lost = lost.acquire().await.unwrap();
    lost.lost().await;
    assert!(matches!(
        lost.downgrade().await,
        Err(LockError::Lost { .. })
    ));
}

async fn tokens_are_unique_and_rise_over_readers_and_writers(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let mut last = None;
    let mut held = Vec::new();
    for round in 0..12 {
        let client = if round % 2 == 0 { &a } else { &b };
        let request = if round % 4 == 3 {
            held.clear();
            write(client)
        } else {
            read(client)
        };
        let guard = request.fenced().acquire().await.unwrap();
        assert!(guard.fencing_token() > last, "{:?} {last:?}", guard);
        last = guard.fencing_token();
        if round % 4 == 3 {
            guard.release().await.unwrap();
        } else {
            held.push(guard);
        }
    }
    // The same for readers that are handed the lock together.
    held.clear();
    let writer = write(&a).fenced().acquire().await.unwrap();
    let mut readers = JoinSet::new();
    for number in 0..8 {
        let client = if number % 2 == 0 { &a } else { &b };
        readers.spawn(read(client).fenced().acquire());
    }
    waiting(&a, 8).await;
    let first = writer.fencing_token();
    writer.release().await.unwrap();
    let mut tokens = vec![first.unwrap()];
    while let Some(reader) = readers.join_next().await {
        tokens.push(reader.unwrap().unwrap().fencing_token().unwrap());
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!((tokens.len(), Some(tokens[0])), (9, first));
}

async fn a_lost_reader_or_writer_is_cancelled(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let brief = Duration::from_millis(150);
    let lease = store.renewable(RENEWED);
    // Of another key, because it takes longer than all the others.
    let max = a.rw_lock("max").write().lease(lease).renew(true);
    let max = max.max_hold(lease * 4 / 3);
    let max = tokio::spawn(max.run(std::future::pending::<()>()));
    for request in [read(&a), write(&a)] {
        let body = request
            .clone()
            .lease(brief)
            .run(std::future::pending::<()>());
        match body.await {
            Err(LockError::Lost { key, reason, .. }) => {
                assert_eq!((key.as_str(), reason), ("k", LostReason::Expired));
            }
            other => panic!("{other:?}"),
        }
        // A hold that its client considers lost is released in the background.
        eventually("it is free", async || {
            b.inspect("k").await.unwrap().holder.is_none()
        })
        .await;
        let renewed = request.lease(lease).renew(true);
        let (runs, endless) = endless_body();
        let body = tokio::spawn(renewed.run(endless));
        runs.await.unwrap();
        assert!(b.inspect("k").await.unwrap().holder.is_some());
        assert!(b.force_release("k").await.unwrap());
        match body.await.unwrap() {
            Err(LockError::Lost { reason, .. }) => assert_eq!(reason, LostReason::Gone),
            other => panic!("{other:?}"),
        }
    }
    // Of two readers, only the one whose lease ends is lost.
    let lasting = read(&b).acquire().await.unwrap();
    let body = read(&a).lease(brief).run(std::future::pending::<()>());
    assert!(matches!(body.await, Err(LockError::Lost { .. })));
    assert!(lasting.is_held());
    let body = max.await.unwrap();
    assert!(
        matches!(
            body,
            Err(LockError::Lost {
                reason: LostReason::MaxHold,
                ..
            })
        ),
        "{body:?}"
    );
}

async fn a_late_release_does_not_end_the_successors_hold(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    for (late, next) in [(read(&a), write(&b)), (write(&a), read(&b))] {
        let late = late.lease(Duration::from_millis(100));
        let late = late.acquire().await.unwrap();
        let next = next.acquire().await.unwrap();
        assert!(!late.is_held(), "it knows before the next one holds");
        assert!(matches!(late.release().await, Err(LockError::Lost { .. })));
        assert_eq!(a.inspect("k").await.unwrap().holders, 1);
        next.release().await.unwrap();
    }
}

async fn hold_at_least_keeps_out_the_same_kinds_as_the_hold(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let keep = Duration::from_millis(800);
    let started = Instant::now();
    read(&a).hold_at_least(keep).run(async {}).await.unwrap();
    assert!(!is_busy(read(&b)).await && is_busy(write(&b)).await);
    write(&b).run(async {}).await.unwrap();
    assert!(started.elapsed() >= keep, "{:?}", started.elapsed());
    let started = Instant::now();
    write(&a).hold_at_least(keep).run(async {}).await.unwrap();
    assert!(is_busy(read(&b)).await && is_busy(write(&b)).await);
    read(&b).run(async {}).await.unwrap();
    assert!(started.elapsed() >= keep, "{:?}", started.elapsed());
    // The `hold_at_least` of a nested request counts for the hold that it shares.
    let started = Instant::now();
    let nested = read(&a).hold_at_least(keep).run(async {});
    write(&a).run(nested).await.unwrap().unwrap();
    read(&b).run(async {}).await.unwrap();
    assert!(started.elapsed() >= keep, "{:?}", started.elapsed());
}

async fn extend_prolongs_one_reader(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let lease = Duration::from_secs(5);
    let one = read(&a).lease(lease).acquire().await.unwrap();
    let two = read(&b).lease(lease).acquire().await.unwrap();
    one.extend(12 * lease).await.unwrap();
    assert!(one.remaining() > 10 * lease && two.remaining() <= lease);
    one.extend(lease).await.unwrap();
    assert!(one.remaining() > 10 * lease, "never shorter");
    let found = a.inspect("k").await.unwrap();
    store.check_rest(found.remaining, |left| left > 10 * lease);
    one.release().await.unwrap();
    let found = a.inspect("k").await.unwrap();
    assert!(found.holders == 1 && found.remaining <= Some(lease));
    a.force_release("k").await.unwrap();
    assert!(matches!(
        two.extend(lease).await,
        Err(LockError::Lost {
            reason: LostReason::Gone,
            ..
        })
    ));
}

async fn an_operator_sees_the_holders_and_takes_all_of_them(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let none = a.inspect("k").await.unwrap();
    assert_eq!((none.holders, none.holder, none.remaining), (0, None, None));
    let short = Duration::from_secs(20);
    let one = read(&a).lease(short).acquire().await.unwrap();
    let _two = read(&b).lease(2 * short).acquire().await.unwrap();
    let writer = queued(&a, write(&b), 1).await;
    let found = a.inspect("k").await.unwrap();
    assert_eq!((found.holders, found.waiting), (2, 1));
    let holder = found.holder.unwrap();
    assert!(
        format!("{b:?}").contains(&holder),
        "the one with the longest lease: {holder} of {b:?}"
    );
    store.check_rest(found.remaining, |left| left > short && left <= 2 * short);
    assert!(a.force_release("k").await.unwrap());
    assert!(writer.await.unwrap().unwrap().is_held());
    assert!(matches!(one.release().await, Err(LockError::Lost { .. })));
}

async fn other_kinds_of_locks_on_one_key_are_a_conflict(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let kinds = |client: &LockClient| {
        [
            client.lock("k"),
            client.lock("k").fair(),
            client.rw_lock("k").read(),
            client.rw_lock("k").write(),
            client.semaphore("k", 3).permit(),
        ]
    };
    let kind = [0, 0, 1, 1, 2];
    // A reader and a semaphore's holder look the same in the store.
    let seen = {
        use KeyKind::{Exclusive, ReadWrite, Shares};
        [Exclusive, Exclusive, Shares, ReadWrite, Shares]
    };
    let others_conflict = async |holds: usize| {
        for (asks, request) in kinds(&b).into_iter().enumerate() {
            if kind[holds] == kind[asks] {
                continue;
            }
            // The plain command for an exclusive lock can't tell them apart, and may report busy.
            match request.clone().try_acquire().await {
                Err(LockError::KeyConflict { key, .. }) => assert_eq!(key.as_str(), "k"),
                Ok(None) if asks == 0 => {}
                other => panic!("{holds} {asks}: {other:?}"),
            }
            match request.wait_forever().acquire().await {
                Err(LockError::KeyConflict { key, found, .. }) => {
                    assert_eq!((key.as_str(), found), ("k", seen[holds]));
                }
                other => panic!("{holds} {asks}: {other:?}"),
            }
        }
    };
    for (holds, request) in kinds(&a).into_iter().enumerate() {
        let kept = request.clone().hold_at_least(Duration::from_secs(60));
        let held = request.acquire().await.unwrap();
        others_conflict(holds).await;
        // Nested requests of another kind as well, without asking the store.
        for (asks, request) in kinds(&a).into_iter().enumerate() {
            if kind[holds] != kind[asks] {
                let nested = held.scope(request.acquire()).await;
                assert!(
                    matches!(nested, Err(LockError::KeyConflict { .. })),
                    "{holds} {asks}: {nested:?}"
                );
            }
        }
        assert!(held.is_held());
        held.release().await.unwrap();
        store.until_empty().await;
        // What stays taken after a release is of the same kind.
        kept.acquire().await.unwrap().release().await.unwrap();
        others_conflict(holds).await;
        assert!(a.force_release("k").await.unwrap());
        store.until_empty().await;
    }
    // Only Redis can hold something other than a lock.
    let Some(server) = store.server_of("lock:k").await else {
        return;
    };
    for words in [
        ["LPUSH", "lock:k", "1", "2"].as_slice(),
        &["HSET", "lock:k", "f", "1"],
        &["SADD", "lock:k", "1"],
        &["ZADD", "lock:k", "1", "member"],
        &["XADD", "lock:k", "*", "f", "1"],
    ] {
        server.command(words).await;
        for request in kinds(&b).into_iter().skip(1) {
            for request in [request.clone().wait(Duration::ZERO), request] {
                let result = request.acquire().await;
                let found = KeyKind::NoLock;
                let Err(LockError::KeyConflict { found: it, .. }) = &result else {
                    panic!("{words:?}: {result:?}");
                };
                assert_eq!(*it, found, "{words:?}");
            }
        }
        for result in [
            b.force_release("k").await.map(drop),
            b.inspect("k").await.map(drop),
        ] {
            assert!(
                matches!(result, Err(LockError::KeyConflict { .. })),
                "{words:?}: {result:?}"
            );
        }
        assert_eq!(server.keys("lock:k").await.len(), 1, "{words:?}");
        server.command(&["DEL", "lock:k"]).await;
    }
    // A lock that another program took by the classic recipe is exclusive.
    server.command(&["SET", "lock:k", "theirs"]).await;
    let result = read(&b).acquire().await;
    assert!(matches!(result, Err(LockError::KeyConflict { .. })));
}

async fn a_shutdown_ends_waiting_and_releases_what_is_held(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let holder = read(&a).acquire().await.unwrap();
    let body = tokio::spawn(read(&b).run(std::future::pending::<()>()));
    eventually("both read", async || {
        a.inspect("k").await.unwrap().holders == 2
    })
    .await;
    let writer = queued(&a, write(&b), 1).await;
    let reader = queued(&a, read(&b), 2).await;
    let nested = holder.scope(queued(&a, write(&a), 3)).await;
    b.shutdown(Duration::from_millis(50)).await;
    for waiter in [writer, reader] {
        assert!(matches!(waiter.await.unwrap(), Err(LockError::Shutdown)));
    }
    match body.await.unwrap() {
        Err(LockError::Lost { reason, .. }) => assert_eq!(reason, LostReason::Shutdown),
        other => panic!("{other:?}"),
    }
    assert!(matches!(read(&b).acquire().await, Err(LockError::Shutdown)));
    holder.release().await.unwrap();
    nested.await.unwrap().unwrap().release().await.unwrap();
    store.until_empty().await;
}
