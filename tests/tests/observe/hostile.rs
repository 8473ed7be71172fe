//! Observers that panic, block, call the client, or are far behind.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lock_runtime::LockClient;
use lock_runtime::observe::{Event, Verb, What};
use lock_testkit::{Log, RedisServer, eventually};

use crate::Told;

#[tokio::test]
async fn an_observer_that_panics_costs_no_lock_and_is_logged_once() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
    let _logs = tracing::subscriber::set_default(subscriber.finish());
    let told = Told::default();
    // Of the lock: what the thread of observers is told, it logs there.
    let panics = |event: &Event<'_>| {
        if event.lock.is_some() {
            std::panic::resume_unwind(Box::new("an observer's own fault"))
        }
    };
    let builder = LockClient::builder().url("memory:").observer(panics);
    let client = builder.observer(told.clone()).connect().await.unwrap();
    for _ in 0..3 {
        let guard = client.lock("k").label("k").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    assert_eq!(
        told.about("k").len(),
        9,
        "the other observer is told everything"
    );
    let logged = log
        .text()
        .matches("an observer of the lock client panicked")
        .count();
    assert_eq!(logged, 1, "{}", log.text());
}

#[tokio::test]
async fn an_observer_that_blocks_costs_no_lease() {
    let server = RedisServer::start().await;
    let (blocks, blocked) = (
        Arc::new(AtomicBool::new(true)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (until, count) = (Arc::clone(&blocks), Arc::clone(&blocked));
    let observer = move |event: &Event<'_>| {
        if let What::Renewed { .. } = event.what {
            count.fetch_add(1, Ordering::SeqCst);
            while until.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    };
    let builder = LockClient::builder().url(server.url()).observer(observer);
    let client = builder.connect().await.unwrap();
    let lease = Duration::from_secs(3);
    let request = client.lock("k").lease(lease).renew(true);
    let guard = request.acquire().await.unwrap();
    eventually("it blocks", async || blocked.load(Ordering::SeqCst) == 1).await;
    let renewals = async || server.command_calls("pexpire").await;
    let before = renewals().await;
    eventually("the lease is renewed all the same", async || {
        renewals().await >= before + 3
    })
    .await;
    assert!(guard.is_held());
    assert_eq!(blocked.load(Ordering::SeqCst), 1, "it still blocks");
    blocks.store(false, Ordering::SeqCst);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn no_observer_runs_on_the_thread_that_renews() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let observer = move |event: &Event<'_>| {
        if let What::Command { verb, .. } = event.what {
            let thread = std::thread::current().name().map(str::to_owned);
            let _ = tell.send((verb, thread.unwrap_or_default()));
        }
    };
    let builder = LockClient::builder().url("memory:").observer(observer);
    let client = builder.connect().await.unwrap();
    let lease = Duration::from_millis(600);
    let request = client.lock("k").lease(lease).renew(true);
    let guard = request.acquire().await.unwrap();
    let mut thread_of = async |wanted: Verb| loop {
        let (verb, thread) = told.recv().await.unwrap();
        if verb == wanted {
            return thread;
        }
    };
    let own = std::thread::current().name().map(str::to_owned);
    assert_eq!(Some(thread_of(Verb::Acquire).await), own, "in its task");
    assert_eq!(thread_of(Verb::Renew).await, "lock-observer");
    drop(guard);
    assert_eq!(thread_of(Verb::Release).await, "lock-observer");
}

#[tokio::test]
async fn an_observer_may_call_the_client() {
    let client = Arc::new(OnceLock::<LockClient>::new());
    let (own, calls) = (Arc::clone(&client), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&calls);
    let observer = move |event: &Event<'_>| {
        let Some(client) = own.get() else { return };
        let stats = client.stats();
        if let What::Granted { .. } = event.what {
            assert_eq!(stats.held, 1);
            let (client, count) = (client.clone(), Arc::clone(&count));
            if event.lock.unwrap().key.as_str() == "k" {
                tokio::spawn(async move {
                    client
                        .lock("from the observer")
                        .run(async {})
                        .await
                        .unwrap();
                    count.fetch_add(1, Ordering::SeqCst);
                });
            }
        }
    };
    let builder = LockClient::builder().url("memory:").observer(observer);
    let built = builder.connect().await.unwrap();
    assert!(client.set(built.clone()).is_ok());
    built.lock("k").run(async {}).await.unwrap();
    eventually("its own lock came and went", async || {
        calls.load(Ordering::SeqCst) == 1
    })
    .await;
}

#[tokio::test]
async fn events_of_an_observer_that_is_far_behind_are_left_out() {
    let (blocks, told) = (
        Arc::new(AtomicBool::new(true)),
        Arc::new(AtomicUsize::new(0)),
    );
    let (until, count) = (Arc::clone(&blocks), Arc::clone(&told));
    let observer = move |event: &Event<'_>| {
        if let What::Undoing { .. } | What::Undone { .. } = event.what {
            while until.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            count.fetch_add(1, Ordering::SeqCst);
        }
    };
    let builder = LockClient::builder().url("memory:").observer(observer);
    let client = builder.connect().await.unwrap();
    let guards = 11_000;
    for _ in 0..guards {
        drop(client.lock("k").acquire().await.unwrap());
    }
    blocks.store(false, Ordering::SeqCst);
    eventually("it is told what was kept", async || {
        told.load(Ordering::SeqCst) > 5_000
    })
    .await;
    assert!(
        told.load(Ordering::SeqCst) < 2 * guards,
        "nothing was left out"
    );
    assert_eq!(client.stats().released, guards as u64);
    client.shutdown(Duration::ZERO).await;
}
