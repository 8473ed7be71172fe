//! Requests in whatever drives them: no runtime, tokio's without drivers, one that has ended.

use std::panic;
use std::sync::{Mutex, Once, PoisonError};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use futures_executor::block_on;
use lock_runtime::{LockClient, LockError, Rate};
use tokio::runtime::{Builder, Runtime};

use crate::Backend;

super::on_every_store!(
    whatever_drives_a_request_it_causes_no_panic,
    every_route_works_in_whatever_drives_it,
);
super::without_a_queue!(whatever_drives_a_request_it_causes_no_panic);

/// The threads that panicked, with what they said.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes each panic of the process from now on.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let thread = thread::current();
            let said = format!("{}: {panic}", thread.name().unwrap_or_default());
            PANICS
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(said);
            before(panic);
        }));
    });
}

/// Those of threads of this name, and those of a client's own thread about a runtime.
fn panics_of(threads: &str) -> Vec<String> {
    let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    let of_client =
        |said: &str| said.starts_with("lock-runtime: ") && said.contains("A Tokio 1.x context");
    let ours = panics
        .iter()
        .filter(|said| said.starts_with(threads) || of_client(said));
    ours.cloned().collect()
}

#[derive(Clone, Copy, Debug)]
enum Drivers {
    None,
    Time,
    Io,
    All,
}

const DRIVERS: [Drivers; 4] = [Drivers::None, Drivers::Time, Drivers::Io, Drivers::All];

fn runtime(mut builder: Builder, drivers: Drivers, threads: &str) -> Runtime {
    builder.thread_name(threads);
    match drivers {
        Drivers::None => &mut builder,
        Drivers::Time => builder.enable_time(),
        Drivers::Io => builder.enable_io(),
        Drivers::All => builder.enable_all(),
    };
    builder.build().unwrap()
}

fn two_workers() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2);
    builder
}

/// What waits on the way: a free lock, one of another client's, one of its own, a lease that ends.
async fn use_locks(client: LockClient, other: LockClient) {
    for _ in 0..5 {
        client.lock("k").run(async {}).await.unwrap();
    }
    let held = other.lock("k").acquire().await.unwrap();
    let short = Duration::from_millis(30);
    let busy = client.lock("k").wait(short).acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    drop(held);
    let own = client.lock("k").acquire().await.unwrap();
    let busy = client.lock("k").wait(short).acquire().await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    own.extend(Duration::from_secs(60)).await.unwrap();
    own.release().await.unwrap();
    let ends = client.lock("ends").lease(Duration::from_millis(100));
    let lost = ends.run(std::future::pending::<()>()).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    let dropped = client.lock("k").acquire().await.unwrap();
    drop(dropped);
    client.health().await.unwrap();
}

/// Runs it in everything that could drive it, one after the other. `threads` is the name of their
/// threads.
fn drive_everywhere(client: &LockClient, other: &LockClient, threads: &str) {
    let body = || use_locks(client.clone(), other.clone());
    block_on(body());
    for drivers in DRIVERS {
        let many = runtime(two_workers(), drivers, threads);
        many.block_on(body());
        many.block_on(many.spawn(body())).unwrap();
        {
            let _entered = many.enter();
            block_on(body());
        }
        let alone = runtime(Builder::new_current_thread(), drivers, threads);
        alone.block_on(body());
        alone.block_on(alone.spawn(body())).unwrap();
        let handle = many.handle().clone();
        let ended = handle.enter();
        let held = block_on(client.lock("k").acquire()).unwrap();
        let mut waiting = Box::pin(client.lock("k").wait(Duration::from_secs(20)).acquire());
        let polled = waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "{polled:?}");
        // It ends under both. What goes on there has the handle of a runtime that is gone.
        many.shutdown_background();
        drop(held);
        drop(block_on(waiting).unwrap());
        block_on(body());
        drop(ended);
    }
}

async fn whatever_drives_a_request_it_causes_no_panic(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let name = format!("driven-{:p}", &raw const client);
    without_panic(name, move |name| drive_everywhere(&client, &other, name)).await;
    store.until_empty().await;
}

/// On a thread of this name, which has no runtime.
async fn without_panic(name: String, drive: impl FnOnce(&str) + Send + 'static) {
    note_panics();
    let caller = thread::Builder::new().name(name.clone());
    let driven = {
        let name = name.clone();
        caller.spawn(move || drive(&name)).unwrap()
    };
    let done = tokio::task::spawn_blocking(move || driven.join().is_ok()).await;
    let panics = panics_of(&name);
    assert!(done.unwrap() && panics.is_empty(), "{panics:#?}");
}

/// Each way to the store, of clients that are made there.
async fn use_every_route(store: Backend) {
    let other = store.builder().connect().await.unwrap();
    let client = store.builder().connect_lazy().unwrap();
    let (short, long) = (Duration::from_millis(30), Duration::from_secs(60));
    let guard = client.lock("k").fenced().acquire().await.unwrap();
    assert!(guard.fencing_token().is_some());
    assert!(client.inspect("k").await.unwrap().holder.is_some());
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    assert!(guard.scope(client.lock("k").run(async {})).await.is_ok());
    assert!(other.force_release("k").await.unwrap());
    drop(guard);
    let several = client.multi_lock(["a", "b"]).acquire().await.unwrap();
    several.release().await.unwrap();
    let rw_lock = client.rw_lock("rw");
    let write = rw_lock.write().await.unwrap();
    write.downgrade().await.unwrap();
    let read = rw_lock.read().await.unwrap();
    let busy = other.rw_lock("rw").write().wait(short).await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    drop((write, read));
    let permits = client.semaphore("s", 2).permits(2).await.unwrap();
    let busy = other.semaphore("s", 2).permit().wait(short).await;
    assert!(matches!(busy, Err(LockError::Busy { .. })), "{busy:?}");
    permits.release().await.unwrap();
    // It stays for as long, open or not.
    let latch = client.latch("l").ttl(Duration::from_secs(20));
    latch.set(1).await.unwrap();
    let early = other.latch("l").wait(short).await;
    assert!(
        matches!(early, Err(LockError::LatchClosed { .. })),
        "{early:?}"
    );
    latch.count_down().await.unwrap();
    other.latch("l").wait(long).await.unwrap();
    let limiter = client.rate_limiter("r", Rate::per_second(50));
    for _ in 0..3 {
        limiter.acquire().await.unwrap();
    }
    limiter.try_acquire().await.unwrap();
    let view = client.namespaced("lock").with_wait(long);
    view.lock("k")
        .run_with(async |guard| guard.key().clone())
        .await
        .unwrap();
    client.scope(async {}).await;
    client.migrate().await.unwrap_or_default();
    client.health().await.unwrap();
    assert!(client.stats().connected);
    let _dropped_by_shutdown = client.lock("k").acquire().await.unwrap();
    client.shutdown(short).await;
    client.closing().await;
    let closed = client.lock("k").acquire().await;
    assert!(matches!(closed, Err(LockError::Shutdown)), "{closed:?}");
}

async fn every_route_works_in_whatever_drives_it(store: Backend) {
    let name = format!("routes-{:p}", &raw const store);
    let driven = store.clone();
    without_panic(name, move |name| drive_routes(&driven, name)).await;
    store.until_empty().await;
}

fn drive_routes(store: &Backend, threads: &str) {
    let routes = || use_every_route(store.clone());
    block_on(routes());
    for drivers in DRIVERS {
        let alone = runtime(Builder::new_current_thread(), drivers, threads);
        alone.block_on(routes());
        let many = runtime(two_workers(), drivers, threads);
        many.block_on(many.spawn(routes())).unwrap();
        let handle = many.handle().clone();
        let entered = handle.enter();
        block_on(routes());
        // What it drops at its end: a hold, one who waits, and a client.
        let client = block_on(store.builder().connect()).unwrap();
        let held = block_on(client.lock("held").acquire()).unwrap();
        let mut waiting = Box::pin(client.lock("held").acquire());
        let polled = waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "{polled:?}");
        many.spawn(async move {
            std::future::pending::<()>().await;
            drop((held, waiting, client));
        });
        many.shutdown_background();
        block_on(routes());
        drop(entered);
    }
}
