//! What happens to held permits: leases, losses, nested requests, and the end of a client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::{Guard, LockError, LostReason};
use tokio::task::JoinSet;

use super::RENEWED;
use super::semaphore::{AT_ONCE, is_busy, permits, queued, served, three, until_waiting};
use crate::conformance::bodies::endless_body;
use crate::polled;

super::on_every_store!(
    permits_of_a_dead_holder_come_back_with_its_lease_while_others_hold,
    holders_are_renewed_each_by_itself,
    a_loss_cancels_that_holder_and_no_other,
    max_hold_ends_one_hold_and_gives_its_permits_back,
    a_late_release_frees_no_permit_twice,
    tokens_are_unique_and_rise_over_all_holders,
    hold_at_least_keeps_the_permits_that_were_held_and_no_more,
    extend_prolongs_one_holder,
    an_operator_sees_the_holders_and_takes_all_permits_back,
    a_nested_request_shares_the_permits_and_takes_none,
    nested_requests_that_can_not_share_are_refused_at_once,
    siblings_inside_a_hold_take_turns,
    another_semaphore_inside_of_a_hold_is_one_of_its_own,
    any_future_dropped_after_any_number_of_polls_leaves_nothing,
    a_waiting_request_dropped_while_it_is_served_leaves_nothing,
    a_shutdown_ends_waiting_and_gives_back_what_is_held,
);

fn lost_by<T: std::fmt::Debug>(result: Result<T, LockError>) -> LostReason {
    match result {
        Err(LockError::Lost { key, reason, .. }) => {
            assert_eq!(key.as_str(), "k");
            reason
        }
        other => panic!("{other:?}"),
    }
}

async fn permits_of_a_dead_holder_come_back_with_its_lease_while_others_hold(store: Backend) {
    let (a, b, c) = three(&store).await;
    // Long enough for the others to come before it ends.
    let lease = Duration::from_secs(3);
    let from = Instant::now();
    // It will be neither released nor renewed.
    let dead = permits(&a, 3, 4).lease(lease).acquire().await.unwrap();
    let live = permits(&b, 1, 4).lease(store.renewable(RENEWED));
    let live = live.renew(true).acquire().await.unwrap();
    assert_eq!(c.inspect("k").await.unwrap().holders, 2);
    let waiters = [
        queued(&c, permits(&c, 1, 4), 1).await,
        queued(&c, permits(&c, 2, 4), 2).await,
    ];
    for waiter in waiters {
        let guard = waiter.await.unwrap().unwrap();
        assert!(from.elapsed() >= lease, "{:?}", from.elapsed());
        assert!(from.elapsed() < lease + Duration::from_millis(1500));
        assert!(guard.is_held() && !dead.is_held());
        guard.release().await.unwrap();
    }
    assert_eq!(lost_by(dead.release().await), LostReason::Expired);
    assert!(live.is_held());
    live.release().await.unwrap();
    // Nothing of it stays behind, although no command came after the last lease had ended.
    drop(permits(&a, 4, 4).lease(lease / 9).acquire().await.unwrap());
    store.until_empty().await;
}

async fn holders_are_renewed_each_by_itself(store: Backend) {
    let (a, b, c) = three(&store).await;
    let lease = store.renewable(RENEWED);
    let mut guards = Vec::new();
    for number in 0..50 {
        let client = if number % 2 == 0 { &a } else { &b };
        let request = permits(client, 1, 50).lease(lease).renew(true);
        guards.push(request.acquire().await.unwrap());
    }
    for guard in guards.drain(..20) {
        guard.release().await.unwrap();
    }
    tokio::time::sleep(lease * 4 / 3).await;
    assert!(guards.iter().all(Guard::is_held));
    assert_eq!(c.inspect("k").await.unwrap().holders, 30);
    assert!(is_busy(permits(&c, 21, 50)).await && !is_busy(permits(&c, 20, 50)).await);
}

async fn a_loss_cancels_that_holder_and_no_other(store: Backend) {
    let (a, b, c) = three(&store).await;
    let brief = Duration::from_millis(200);
    let lasting = permits(&b, 1, 3).acquire().await.unwrap();
    let same_client = permits(&a, 1, 3).acquire().await.unwrap();
    let body = permits(&a, 1, 3)
        .lease(brief)
        .run(std::future::pending::<()>());
    assert_eq!(lost_by(body.await), LostReason::Expired);
    assert!(lasting.is_held() && same_client.is_held());
    let third = permits(&c, 1, 3).acquire().await.unwrap();
    let all = [lasting, same_client, third];
    assert!(all.iter().all(Guard::is_held));
    drop(all);
    // These are released in the background, and must not be mistaken for the next ones.
    store.until_empty().await;
    // If they are taken away by force, each learns of it at its next renewal.
    let mut bodies = JoinSet::new();
    for client in [&a, &b, &c] {
        let lease = store.renewable(RENEWED);
        let request = permits(client, 1, 3).lease(lease).renew(true);
        let (runs, endless) = endless_body();
        bodies.spawn(request.run(endless));
        runs.await.unwrap();
    }
    assert_eq!(a.inspect("k").await.unwrap().holders, 3);
    assert!(b.force_release("k").await.unwrap());
    while let Some(body) = bodies.join_next().await {
        assert_eq!(lost_by(body.unwrap()), LostReason::Gone);
    }
    store.until_empty().await;
}

async fn max_hold_ends_one_hold_and_gives_its_permits_back(store: Backend) {
    let (a, b, _) = three(&store).await;
    let lease = store.renewable(RENEWED);
    let other = permits(&b, 1, 2).acquire().await.unwrap();
    let request = permits(&a, 1, 2).lease(lease).renew(true);
    let body = request
        .max_hold(lease * 4 / 3)
        .run(std::future::pending::<()>());
    assert_eq!(lost_by(body.await), LostReason::MaxHold);
    let again = permits(&b, 1, 2).acquire().await.unwrap();
    assert!(other.is_held() && again.is_held());
}

async fn a_late_release_frees_no_permit_twice(store: Backend) {
    let (a, b, c) = three(&store).await;
    let late = permits(&a, 2, 2).lease(Duration::from_millis(100));
    let late = late.acquire().await.unwrap();
    let next = permits(&b, 1, 2).acquire().await.unwrap();
    let other = permits(&c, 1, 2).acquire().await.unwrap();
    assert!(!late.is_held(), "it knows before the next one holds");
    assert_eq!(lost_by(late.release().await), LostReason::Expired);
    assert!(is_busy(permits(&a, 1, 2)).await);
    // A guard is released once. A later drop does nothing.
    next.release().await.unwrap();
    let again = permits(&a, 1, 2).acquire().await.unwrap();
    assert!(is_busy(permits(&a, 1, 2)).await);
    drop((other, again));
    store.until_empty().await;
}

async fn tokens_are_unique_and_rise_over_all_holders(store: Backend) {
    let (a, b, _) = three(&store).await;
    let (mut last, mut held) = (None, Vec::new());
    for number in 0..10 {
        let client = if number % 2 == 0 { &a } else { &b };
        let guard = permits(client, 1, 10).fenced().acquire().await.unwrap();
        assert!(guard.fencing_token() > last, "{guard:?} {last:?}");
        last = guard.fencing_token();
        held.push(guard);
    }
    // The same for permits that are handed over together.
    let mut waiters = JoinSet::new();
    for number in 0..8 {
        let client = if number % 2 == 0 { &a } else { &b };
        waiters.spawn(permits(client, 1, 10).fenced().acquire());
    }
    until_waiting(&a, 8).await;
    drop(held);
    let mut tokens = vec![last.unwrap()];
    while let Some(waiter) = waiters.join_next().await {
        tokens.push(waiter.unwrap().unwrap().fencing_token().unwrap());
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!((tokens.len(), Some(tokens[0])), (9, last));
}

async fn hold_at_least_keeps_the_permits_that_were_held_and_no_more(store: Backend) {
    let (a, b, _) = three(&store).await;
    let keep = Duration::from_secs(2);
    let started = Instant::now();
    let short = permits(&a, 2, 3).hold_at_least(keep);
    short.run(async {}).await.unwrap();
    let one = permits(&b, 1, 3).try_acquire().await.unwrap().unwrap();
    assert!(is_busy(permits(&b, 1, 3)).await);
    let two = permits(&b, 2, 3).acquire().await.unwrap();
    assert!(started.elapsed() >= keep, "{:?}", started.elapsed());
    drop((one, two));
    store.until_empty().await;
}

async fn extend_prolongs_one_holder(store: Backend) {
    let (a, b, _) = three(&store).await;
    let lease = Duration::from_secs(5);
    let one = permits(&a, 2, 4).lease(lease).acquire().await.unwrap();
    let two = permits(&b, 2, 4).lease(lease).acquire().await.unwrap();
    one.extend(12 * lease).await.unwrap();
    assert!(one.remaining() > 10 * lease && two.remaining() <= lease);
    one.extend(lease).await.unwrap();
    assert!(one.remaining() > 10 * lease, "never shorter");
    let left = a.inspect("k").await.unwrap().remaining;
    store.check_rest(left, |left| left > 10 * lease);
    // The number has not risen.
    assert_eq!(a.inspect("k").await.unwrap().holders, 2);
    one.release().await.unwrap();
    let found = a.inspect("k").await.unwrap();
    assert!(found.holders == 1 && found.remaining <= Some(lease));
    assert!(!is_busy(permits(&a, 2, 4)).await);
    a.force_release("k").await.unwrap();
    assert_eq!(lost_by(two.extend(lease).await), LostReason::Gone);
}

async fn an_operator_sees_the_holders_and_takes_all_permits_back(store: Backend) {
    let (a, b, _) = three(&store).await;
    let none = a.inspect("k").await.unwrap();
    assert_eq!((none.holders, none.holder, none.remaining), (0, None, None));
    let short = Duration::from_secs(20);
    let one = permits(&a, 2, 3).lease(short).acquire().await.unwrap();
    let _two = permits(&b, 1, 3).lease(2 * short).acquire().await.unwrap();
    let first = queued(&a, permits(&b, 2, 3), 1).await;
    let second = queued(&a, permits(&a, 1, 3), 2).await;
    let third = queued(&a, permits(&a, 1, 3), 3).await;
    let found = a.inspect("k").await.unwrap();
    assert_eq!((found.holders, found.waiting), (2, 3));
    let holder = found.holder.unwrap();
    assert!(
        format!("{b:?}").contains(&holder),
        "the one with the longest lease: {holder} of {b:?}"
    );
    store.check_rest(found.remaining, |left| left > short && left <= 2 * short);
    assert!(a.force_release("k").await.unwrap());
    let (first, second) = (served(first).await, served(second).await);
    assert!(!third.is_finished() && first.is_held() && second.is_held());
    let released = one.release().await;
    assert_eq!(lost_by(released), LostReason::Gone);
    assert!(!third.is_finished(), "what is lost gives nothing back");
    drop(first);
    assert!(served(third).await.is_held());
}

async fn a_nested_request_shares_the_permits_and_takes_none(store: Backend) {
    let (a, b, _) = three(&store).await;
    let lease = store.renewable(RENEWED);
    let outer = permits(&a, 2, 3).lease(lease).renew(true).fenced();
    let outer = outer.acquire().await.unwrap();
    let nested = async {
        for wants in [1, 2] {
            let inner = permits(&a, wants, 3).fenced().acquire().await.unwrap();
            assert_eq!(inner.fencing_token(), outer.fencing_token());
            // As many permits are taken as before, also deeper down.
            let deeper = inner.scope(permits(&a, 1, 3).acquire()).await.unwrap();
            assert_eq!(b.inspect("k").await.unwrap().holders, 1);
            drop(deeper);
            assert!(is_busy(permits(&b, 2, 3)).await && !is_busy(permits(&b, 1, 3)).await);
            inner.release().await.unwrap();
            assert!(is_busy(permits(&b, 2, 3)).await, "the outer hold stays");
        }
        permits(&a, 1, 3)
            .lease(Duration::from_millis(10))
            .run(async {})
            .await
            .unwrap();
    };
    outer.scope(nested).await;
    tokio::time::sleep(lease * 4 / 3).await;
    assert!(outer.is_held() && is_busy(permits(&b, 2, 3)).await);
    outer.release().await.unwrap();
    store.until_empty().await;
}

async fn nested_requests_that_can_not_share_are_refused_at_once(store: Backend) {
    let client = store.client().await;
    let outer = permits(&client, 2, 4).acquire().await.unwrap();
    let started = Instant::now();
    outer
        .scope(async {
            for refused in [
                // Others hold nothing, and two permits are free. The next time they might not be.
                permits(&client, 3, 4),
                permits(&client, 4, 4).wait_forever(),
                permits(&client, 3, 4).wait(Duration::ZERO),
                permits(&client, 1, 4).reentrant(false).wait_forever(),
            ] {
                match refused.acquire().await {
                    Err(LockError::WouldDeadlock { key, .. }) => assert_eq!(key.as_str(), "k"),
                    other => panic!("{other:?}"),
                }
            }
        })
        .await;
    assert!(started.elapsed() < Duration::from_secs(5));
    // Without nesting, it is an ordinary request.
    assert!(!is_busy(permits(&client, 2, 4)).await);
    let spawned = outer.scope(async { tokio::spawn(permits(&client, 2, 4).acquire()).await });
    let spawned = spawned.await.unwrap().unwrap();
    assert!(is_busy(permits(&client, 1, 4)).await);
    drop((spawned, outer));
    store.until_empty().await;
}

async fn siblings_inside_a_hold_take_turns(store: Backend) {
    let client = store.client().await;
    let inside = AtomicBool::new(false);
    let sibling = || {
        permits(&client, 1, 3).run(async {
            assert!(!inside.swap(true, Ordering::SeqCst), "not alone");
            tokio::time::sleep(Duration::from_millis(10)).await;
            inside.store(false, Ordering::SeqCst);
        })
    };
    let siblings = async { tokio::join!(sibling(), sibling(), sibling()) };
    let all = permits(&client, 3, 3).run(siblings).await.unwrap();
    all.0.and(all.1).and(all.2).unwrap();
    // Side by side, without an outer hold, they take three permits.
    let barrier = tokio::sync::Barrier::new(3);
    let sibling = || permits(&client, 1, 3).run(async { _ = barrier.wait().await });
    let all = tokio::join!(sibling(), sibling(), sibling());
    all.0.and(all.1).and(all.2).unwrap();
}

async fn another_semaphore_inside_of_a_hold_is_one_of_its_own(store: Backend) {
    let client = store.client().await;
    let other = client.semaphore("other", 2);
    let nested = async {
        let one = other.permit().await.unwrap();
        let two = other.permit().await.unwrap();
        assert!(is_busy(other.permit()).await, "no hold around these two");
        drop((one, two));
        client.lock("lock").run(async {}).await.unwrap();
    };
    permits(&client, 1, 1).run(nested).await.unwrap();
    store.until_empty().await;
}

async fn any_future_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let client = store.client().await;
    let all_free = async |polls: usize| {
        let all = permits(&client, 3, 3).try_acquire().await.unwrap();
        let all = all.unwrap_or_else(|| panic!("some are taken after {polls} polls"));
        all.release().await.unwrap();
        store.until_empty().await;
        assert_eq!(client.health().await.unwrap().waiting, 0);
    };
    for round in 0..12 {
        for polls in 0.. {
            let request = permits(&client, 2, 3);
            let complete = match round % 4 {
                0 => polled(polls, request.acquire()).await.is_some(),
                1 => polled(polls, request.fenced().try_acquire())
                    .await
                    .is_some(),
                2 => polled(polls, request.run(tokio::task::yield_now()))
                    .await
                    .is_some(),
                _ => {
                    let guard = request.acquire().await.unwrap();
                    polled(polls, guard.release()).await.is_some()
                }
            };
            all_free(polls).await;
            if complete {
                break;
            }
        }
    }
    assert_eq!(client.health().await.unwrap().release_failures, 0);
}

async fn a_waiting_request_dropped_while_it_is_served_leaves_nothing(store: Backend) {
    let (client, holder, behind) = three(&store).await;
    for polls in 0.. {
        let held = permits(&holder, 2, 2).acquire().await.unwrap();
        let request = permits(&client, 2, 2).wait(Duration::from_millis(40));
        let (output, waiter) = tokio::join!(polled(polls, request.acquire()), async {
            // With more than two polls, the drop races with the grant, and another request waits
            // behind it.
            if polls > 2 {
                held.release().await.unwrap();
                Some(tokio::spawn(permits(&behind, 1, 2).acquire()))
            } else {
                drop(held);
                None
            }
        });
        let complete = output.is_some();
        if let Some(Err(error)) = &output {
            assert!(matches!(error, LockError::Busy { .. }), "{error}");
        }
        drop(output);
        if let Some(waiter) = waiter {
            let started = Instant::now();
            waiter.await.unwrap().unwrap().release().await.unwrap();
            assert!(started.elapsed() < Duration::from_millis(2500));
        }
        store.until_empty().await;
        assert_eq!(client.health().await.unwrap().waiting, 0);
        if complete && polls > 2 {
            return;
        }
    }
}

async fn a_shutdown_ends_waiting_and_gives_back_what_is_held(store: Backend) {
    let (a, b, _) = three(&store).await;
    let holder = permits(&a, 1, 3).acquire().await.unwrap();
    let body = tokio::spawn(permits(&b, 2, 3).run(std::future::pending::<()>()));
    eventually("both hold", async || {
        a.inspect("k").await.unwrap().holders == 2
    })
    .await;
    let gone = [
        queued(&a, permits(&b, 3, 3), 1).await,
        queued(&a, permits(&b, 1, 3), 2).await,
    ];
    let stays = queued(&a, permits(&a, 2, 3), 3).await;
    let started = Instant::now();
    b.shutdown(Duration::from_millis(50)).await;
    for waiter in gone {
        assert!(matches!(waiter.await.unwrap(), Err(LockError::Shutdown)));
    }
    assert_eq!(lost_by(body.await.unwrap()), LostReason::Shutdown);
    let refused = permits(&b, 1, 3).acquire().await;
    assert!(matches!(refused, Err(LockError::Shutdown)));
    let stays = stays.await.unwrap().unwrap();
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert!(holder.is_held() && is_busy(permits(&a, 1, 3)).await);
    drop((holder, stays));
    store.until_empty().await;
}
