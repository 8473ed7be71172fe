//! Callers' runtimes, which the client shares its connection with and needs no I/O of.

use std::future::poll_fn;
use std::panic;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::time::{Duration, Instant};

use lock_runtime::LockClient;
use lock_testkit::{RedisServer, eventually};
use tokio::runtime::{Builder, Runtime};

use crate::{client, until_waiting};

const LONG: Duration = Duration::from_secs(30);

fn runtime(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .enable_all()
        .build()
        .unwrap()
}

/// Polls all of them in one task.
async fn join_all<F: Future>(mut futures: Vec<Pin<Box<F>>>) -> Vec<F::Output> {
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        match outputs.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_hand_over_to_a_waiter_of_any_runtime_takes_no_command_of_its_own() {
    let server = RedisServer::start().await;
    let other = client(&server.url()).await;
    let held = other.lock("k").lease(LONG).acquire().await.unwrap();
    let client = client(&server.url()).await;
    let own = runtime(1);
    let waiting = own.spawn(client.lock("k").wait(LONG).acquire());
    until_waiting(&client, "k", 1).await;
    assert_eq!(server.client_count().await, 2, "one for each client");
    server.reset_stats().await;
    held.release().await.unwrap();
    drop(waiting.await.unwrap().unwrap());
    // Both of these are releases.
    eventually("both have given it back", async || {
        server.command_calls("evalsha").await == 2
    })
    .await;
    own.shutdown_background();
}

#[test]
fn a_caller_is_served_while_all_workers_of_its_runtime_are_blocked() {
    let own = runtime(2);
    let (server, client) = own.block_on(async {
        let server = RedisServer::start().await;
        let client = client(&server.url()).await;
        for _ in 0..3 {
            let used = tokio::spawn(client.lock("used").run(async {}));
            used.await.unwrap().unwrap();
        }
        (server, client)
    });
    let (blocked, may_end) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
    for _ in 0..2 {
        let (blocked, may_end) = (Arc::clone(&blocked), Arc::clone(&may_end));
        own.spawn(async move {
            blocked.wait();
            may_end.wait();
        });
    }
    blocked.wait();
    // As many at once as share a write, and one alone.
    let many = (0..20).map(|number| Box::pin(client.lock(format!("k{number}")).try_acquire()));
    let served = own.block_on(join_all(many.collect()));
    let alone = own.block_on(client.lock("k").try_acquire());
    may_end.wait();
    assert!(alone.unwrap().is_some());
    assert!(served.into_iter().all(|one| one.unwrap().is_some()));
    own.block_on(async { drop(server) });
}

/// What a request has left to be written together with others, and then is not polled.
#[tokio::test]
async fn a_command_that_its_caller_leaves_unsent_is_sent_in_a_quarter_of_its_time() {
    let server = RedisServer::start().await;
    let builder = LockClient::builder().url(server.url());
    let client = builder.command_timeout(LONG / 10).connect().await.unwrap();
    client.health().await.unwrap();
    server.reset_stats().await;
    let request = |key| Box::pin(client.lock(key).lease(LONG).acquire());
    let mut requests = Vec::from(["a", "b", "c"].map(request));
    let began = Instant::now();
    poll_fn(|cx| {
        for request in &mut requests {
            assert!(request.as_mut().poll(cx).is_pending());
        }
        Poll::Ready(())
    })
    .await;
    eventually("the server has all of them", async || {
        server.keys("lock:?").await.len() == 3
    })
    .await;
    assert!(began.elapsed() < LONG / 20, "{:?}", began.elapsed());
    for granted in join_all(requests).await {
        granted.unwrap().release().await.unwrap();
    }
    assert_eq!(server.command_calls("set").await, 3, "none is sent twice");
}

#[test]
fn clients_that_come_and_go_cause_no_panic_in_their_callers_runtime() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if panic.to_string().contains("A Tokio 1.x context") {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        hook(panic);
    }));
    let mut builder = Builder::new_multi_thread();
    let own = builder.worker_threads(2).enable_all().build().unwrap();
    own.block_on(async {
        let server = RedisServer::start().await;
        for round in 0..300 {
            let url = server.url();
            let gone = tokio::spawn(async move {
                let client = client(&url).await;
                let guard = client.lock("k").acquire().await.unwrap();
                guard.release().await.unwrap();
                if round % 2 == 0 {
                    client.shutdown(LONG).await;
                }
            });
            gone.await.unwrap();
        }
    });
    own.shutdown_timeout(LONG);
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}
