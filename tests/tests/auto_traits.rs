//! What can be sent between threads, shared and printed: all public types, and every public future.

use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use lock_runtime::{
    Decision, Faults, FencingToken, Finding, Guard, Health, HeldByAnother, Inspection, KeyFault,
    KeyKind, Latch, Lock, LockClient, LockClientBuilder, LockError, LockKey, LostReason, OnLost,
    Rate, RateLimiter, Role, RwLock, Semaphore, ServerHealth, StoreError, StoreErrorKind,
    distributed_lock, rate_limited,
};

fn send_sync_debug<T: Send + Sync + Debug>() {}
fn cloned<T: Clone>() {}
fn sent<T: Send>(value: T) -> T {
    value
}

#[distributed_lock(key = "k")]
async fn sends(text: String) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

#[rate_limited(key = "k", rate = "1/s")]
async fn limited(text: String) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

#[distributed_lock(key = "k")]
async fn does_not_send(text: Rc<str>) -> Result<usize, LockError> {
    tokio::task::yield_now().await;
    Ok(text.len())
}

#[test]
fn types_are_send_sync_and_debug() {
    send_sync_debug::<LockClient>();
    send_sync_debug::<LockClientBuilder>();
    send_sync_debug::<Lock>();
    send_sync_debug::<(Latch, RwLock, Semaphore)>();
    send_sync_debug::<Guard>();
    send_sync_debug::<RateLimiter>();
    send_sync_debug::<(Faults, HeldByAnother)>();
    send_sync_debug::<LockKey>();
    send_sync_debug::<LockError>();
    send_sync_debug::<StoreError>();
    send_sync_debug::<(
        Decision,
        Rate,
        FencingToken,
        Health,
        Inspection,
        (Finding, Role, ServerHealth),
        KeyFault,
        KeyKind,
        LostReason,
        OnLost,
        StoreErrorKind,
    )>();
    cloned::<(
        Decision,
        Rate,
        RateLimiter,
        LockClient,
        LockClientBuilder,
        Lock,
        LockKey,
        FencingToken,
        StoreError,
    )>();
}

#[tokio::test(flavor = "current_thread")]
async fn futures_are_send_when_what_they_run_is() {
    let client = LockClient::in_memory();
    drop(sent(lock_runtime::init("memory:")));
    drop(sent(LockClient::builder().connect()));
    drop(sent(client.inspect("k")));
    drop(sent(client.force_release("k")));
    drop(sent(client.health()));
    let latch = client.latch("latch");
    drop(sent(latch.set(1)));
    drop(sent(latch.count_down()));
    drop(sent(latch.count()));
    drop(sent(latch.wait(Duration::ZERO)));
    drop(sent(latch.wait_forever()));
    drop(sent(client.scope(std::future::ready(()))));
    drop(sent(client.lock("k").run(std::future::ready(()))));
    drop(sent(
        client
            .lock("k")
            .run_with(async |guard: &Guard| guard.is_held()),
    ));
    drop(sent(
        client.lock("k").lead(async |term: &Guard| term.is_held()),
    ));
    drop(sent(client.scope(sends("text".to_owned()))));
    drop(sent(client.lock("k").try_acquire()));
    drop(sent(client.scope(limited("text".to_owned()))));
    let limiter = client.rate_limiter("k", Rate::per_second(1));
    drop(sent(limiter.acquire()));
    drop(sent(limiter.permits(1)));
    drop(sent(limiter.try_acquire()));
    drop(sent(limiter.try_permits(1)));
    let Ok(guard) = sent(client.lock("k").acquire()).await else {
        return;
    };
    drop(sent(guard.lost()));
    drop(sent(guard.extend(Duration::from_secs(1))));
    drop(sent(guard.scope(std::future::ready(()))));
    drop(sent(guard.release()));
    // And the future need not be `Send`.
    assert!(matches!(
        client.scope(does_not_send("text".into())).await,
        Ok(4)
    ));
    let shared = Rc::new(1);
    assert!(
        matches!(client.lock("k").run(async { Rc::clone(&shared) }).await, Ok(one) if *one == 1)
    );
    sent(client.shutdown(Duration::ZERO)).await;
}
