//! A lock that is taken from its holder in good order: what runs under it is stopped, and only then
//! does the next one get it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::RENEWED;
use crate::{Backend, eventually};
use lock_runtime::{Lock, LockClient, LockError, LostReason, OnLost, Revocation, WhyHeld};

super::on_every_store!(
    a_revoked_body_is_stopped_and_the_lock_is_released,
    every_kind_of_lock_can_be_revoked,
    a_permit_can_be_revoked_by_the_name_of_its_client,
    what_goes_on_after_its_revocation_keeps_the_lock_until_it_ends,
    a_client_can_refuse_and_says_so,
    a_holder_that_does_not_answer_is_told,
    a_waiter_gets_the_lock_of_which_the_holder_was_revoked,
    a_client_can_revoke_what_it_holds_itself,
    a_key_that_stays_taken_is_told,
    several_keys_of_a_hold_end_together,
);

super::without_a_queue!(
    a_revoked_body_is_stopped_and_the_lock_is_released,
    what_goes_on_after_its_revocation_keeps_the_lock_until_it_ends,
    a_client_can_refuse_and_says_so,
    a_holder_that_does_not_answer_is_told,
    a_client_can_revoke_what_it_holds_itself,
    a_key_that_stays_taken_is_told,
);

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(1500);

async fn named(store: &Backend, name: &str) -> LockClient {
    store.builder().name(name).connect().await.unwrap()
}

/// A body that ends by force only.
fn run_for_ever(lock: Lock) -> tokio::task::JoinHandle<Result<(), LockError>> {
    tokio::spawn(lock.run(std::future::pending()))
}

async fn until_held(client: &LockClient, key: &str, holders: usize) {
    eventually("it is held", async || {
        client.inspect(key).await.unwrap().holders == holders
    })
    .await;
}

fn expect_revoked(result: Result<(), LockError>) {
    let is_revoked = matches!(
        result,
        Err(LockError::Lost {
            reason: LostReason::Revoked,
            ..
        })
    );
    assert!(is_revoked, "{result:?}");
}

fn expect_complete(revoked: &Revocation, released: usize) {
    assert!(revoked.is_complete(), "{revoked}");
    assert_eq!(revoked.released, released);
}

async fn a_revoked_body_is_stopped_and_the_lock_is_released(store: Backend) {
    let (holder, other) = (store.client().await, store.client().await);
    expect_complete(&other.revoke("k", SHORT).await.unwrap(), 0);
    let body = run_for_ever(holder.lock("k"));
    until_held(&other, "k", 1).await;
    expect_complete(&other.revoke("k", LONG).await.unwrap(), 1);
    expect_revoked(body.await.unwrap());
    assert!(other.lock("k").try_acquire().await.unwrap().is_some());
    assert_eq!(holder.stats().lost, 1);
}

async fn every_kind_of_lock_can_be_revoked(store: Backend) {
    let (a, b, other) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    for (key, locks) in [
        ("fair", vec![a.lock("fair").fair().fenced()]),
        ("write", vec![a.rw_lock("write").write()]),
        (
            "read",
            vec![a.rw_lock("read").read(), b.rw_lock("read").read()],
        ),
        (
            "permits",
            vec![
                a.semaphore("permits", 5).permit(),
                b.semaphore("permits", 5).permits(2),
                a.semaphore("permits", 5).permit(),
            ],
        ),
    ] {
        let holders = locks.len();
        let bodies: Vec<_> = locks.into_iter().map(run_for_ever).collect();
        until_held(&other, key, holders).await;
        let revoked = other.revoke(key, LONG).await.unwrap();
        expect_complete(&revoked, holders);
        for body in bodies {
            expect_revoked(body.await.unwrap());
        }
        assert_eq!(other.inspect(key).await.unwrap().holders, 0, "{key}");
    }
}

async fn a_permit_can_be_revoked_by_the_name_of_its_client(store: Backend) {
    let (a, b) = (named(&store, "a:1").await, named(&store, "b:2").await);
    let first = run_for_ever(a.semaphore("k", 2).permit());
    let second = run_for_ever(b.semaphore("k", 2).permit());
    let other = store.client().await;
    until_held(&other, "k", 2).await;
    let nobody = other.revoke("k", SHORT).held_by("c:3").await.unwrap();
    expect_complete(&nobody, 0);
    let revoked = other.revoke("k", LONG).held_by("b:2").await.unwrap();
    expect_complete(&revoked, 1);
    expect_revoked(second.await.unwrap());
    assert!(!first.is_finished());
    assert_eq!(other.inspect("k").await.unwrap().holders, 1);
    first.abort();
}

async fn what_goes_on_after_its_revocation_keeps_the_lock_until_it_ends(store: Backend) {
    let (holder, other) = (named(&store, "a:1").await, store.client().await);
    let lease = store.renewable(RENEWED);
    let lock = holder.lock("k").lease(lease).renew(true);
    let (ends, ended) = tokio::sync::oneshot::channel::<()>();
    let goes_on = Arc::new(AtomicBool::new(true));
    let runs = Arc::clone(&goes_on);
    let body = tokio::spawn(lock.on_lost(OnLost::Continue).run(async move {
        let _ = ended.await;
        runs.store(false, Ordering::Release);
    }));
    until_held(&other, "k", 1).await;
    let revoked = other.revoke("k", lease * 4 / 3).await.unwrap();
    let [still] = &revoked.left[..] else {
        panic!("{revoked:?}");
    };
    assert_eq!(still.why, WhyHeld::Running);
    assert_eq!(still.client.as_deref(), Some("a:1"));
    let text = revoked.to_string();
    assert!(text.ends_with("; a:1 was told, and still runs"), "{text}");
    // Longer than its lease, and nobody has come in.
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    let next = tokio::spawn(other.lock("k").wait(LONG).acquire());
    ends.send(()).unwrap();
    let guard = next.await.unwrap().unwrap();
    assert!(!goes_on.load(Ordering::Acquire), "the body had ended");
    body.await.unwrap().unwrap();
    drop(guard);
    // A guard in somebody's hands.
    let kept = holder.lock("g").acquire().await.unwrap();
    let revoked = other.revoke("g", SHORT).await.unwrap();
    assert_eq!(revoked.left[0].why, WhyHeld::Running);
    assert!(!kept.is_held());
    kept.lost().await;
    drop(kept);
    assert!(other.revoke("g", LONG).await.unwrap().is_complete());
    // A body that blocks its thread.
    let (ends, blocks) = std::sync::mpsc::channel::<()>();
    let (lock, runtime) = (holder.lock("b"), tokio::runtime::Handle::current());
    let body = move || runtime.block_on(lock.run(async move { blocks.recv().is_ok() }));
    let body = tokio::task::spawn_blocking(body);
    until_held(&other, "b", 1).await;
    let revoked = other.revoke("b", SHORT).await.unwrap();
    assert_eq!(revoked.left[0].why, WhyHeld::Running);
    assert!(other.lock("b").try_acquire().await.unwrap().is_none());
    ends.send(()).unwrap();
    let lost = body.await.unwrap().unwrap_err();
    assert!(lost.body_ended(), "{lost:?}");
    assert!(other.revoke("b", LONG).await.unwrap().is_complete());
}

async fn a_client_can_refuse_and_says_so(store: Backend) {
    let builder = store.builder().name("mine").revocable(false);
    let (holder, other) = (builder.connect().await.unwrap(), store.client().await);
    let guard = holder.lock("k").acquire().await.unwrap();
    let revoked = other.revoke("k", LONG).await.unwrap();
    assert_eq!(revoked.left[0].why, WhyHeld::Refused, "before the timeout");
    assert!(guard.is_held());
    let text = revoked.to_string();
    assert!(text.ends_with("; mine refuses"), "{text}");
    // By itself, too.
    let own = holder.revoke("k", LONG).await.unwrap();
    assert_eq!(own.left[0].why, WhyHeld::Refused);
    guard.release().await.unwrap();
}

async fn a_holder_that_does_not_answer_is_told(store: Backend) {
    let client = store.client().await;
    let Some(server) = store.server_of("lock:k").await else {
        return;
    };
    let gone = format!("{:032x}-1", 7);
    for (value, why) in [
        (gone.as_str(), WhyHeld::NoAnswer),
        ("theirs", WhyHeld::Foreign),
    ] {
        server.command(&["SET", "lock:k", value]).await;
        let revoked = client.revoke("k", SHORT).await.unwrap();
        assert_eq!(revoked.left[0].why, why, "{value}");
    }
    server.command(&["DEL", "lock:k"]).await;
}

async fn a_waiter_gets_the_lock_of_which_the_holder_was_revoked(store: Backend) {
    let (holder, waiter, other) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let body = run_for_ever(holder.lock("k"));
    until_held(&other, "k", 1).await;
    let waits = tokio::spawn(waiter.lock("k").wait(LONG).acquire());
    eventually("it waits", async || {
        other.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    expect_complete(&other.revoke("k", LONG).await.unwrap(), 1);
    let guard = waits.await.unwrap().unwrap();
    assert!(guard.is_held(), "it came later, and was not meant");
    expect_revoked(body.await.unwrap());
}

async fn a_client_can_revoke_what_it_holds_itself(store: Backend) {
    let client = store.client().await;
    let body = run_for_ever(client.lock("k"));
    until_held(&client, "k", 1).await;
    expect_complete(&client.revoke("k", LONG).await.unwrap(), 1);
    expect_revoked(body.await.unwrap());
}

async fn a_key_that_stays_taken_is_told(store: Backend) {
    let (holder, other) = (store.client().await, store.client().await);
    let body = run_for_ever(holder.lock("k").hold_at_least(LONG));
    until_held(&other, "k", 1).await;
    let revoked = other.revoke("k", LONG).await.unwrap();
    assert_eq!(revoked.left[0].why, WhyHeld::Kept, "{revoked}");
    expect_revoked(body.await.unwrap());
    assert!(other.force_release("k").await.unwrap());
}

async fn several_keys_of_a_hold_end_together(store: Backend) {
    let (holder, other) = (store.client().await, store.client().await);
    let body = run_for_ever(holder.multi_lock(["{t}a", "{t}b"]));
    until_held(&other, "{t}b", 1).await;
    until_held(&other, "{t}a", 1).await;
    expect_complete(&other.revoke("{t}b", LONG).await.unwrap(), 1);
    expect_revoked(body.await.unwrap());
    eventually("both are free", async || {
        other.inspect("{t}a").await.unwrap().holders == 0
    })
    .await;
}
