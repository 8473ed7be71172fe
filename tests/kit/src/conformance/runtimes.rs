//! Requests in whatever drives them: no runtime, tokio's without drivers, one that has ended.

use std::panic;
use std::pin::pin;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use tokio::runtime::{Builder, Runtime};

use crate::Backend;

super::on_every_store!(whatever_drives_a_request_it_causes_no_panic);
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

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// As the `block_on` of other libraries.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
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
    note_panics();
    let (client, other) = (store.client().await, store.client().await);
    let name = format!("driven-{:p}", &raw const client);
    let driven = {
        let (name, client, other) = (name.clone(), client.clone(), other.clone());
        let caller = thread::Builder::new().name(name.clone());
        caller.spawn(move || drive_everywhere(&client, &other, &name))
    };
    let driven = driven.unwrap();
    let done = tokio::task::spawn_blocking(move || driven.join().is_ok()).await;
    let panics = panics_of(&name);
    assert!(done.unwrap() && panics.is_empty(), "{panics:#?}");
    drop((client, other));
    store.until_empty().await;
}
