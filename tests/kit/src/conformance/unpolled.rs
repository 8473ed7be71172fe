//! Requests that wait and that nobody polls: they cost others a moment, however many they are.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::{Backend, eventually, polled};
use lock_runtime::{Guard, LockClient, LockError};

super::on_every_store!(
    a_row_of_unpolled_requests_costs_some_seconds,
    a_row_of_unpolled_requests_in_the_stores_queue_costs_some_seconds,
    a_row_of_unpolled_nested_requests_costs_some_seconds,
    a_nested_request_that_is_skipped_goes_on_when_it_is_polled,
    a_nested_body_that_is_not_polled_keeps_its_turn,
);

super::without_a_queue!(
    a_row_of_unpolled_requests_costs_some_seconds,
    a_row_of_unpolled_nested_requests_costs_some_seconds,
    a_nested_request_that_is_skipped_goes_on_when_it_is_polled,
    a_nested_body_that_is_not_polled_keeps_its_turn,
);

const WAIT: Duration = Duration::from_secs(30);
/// One after the other they cost 18 s.
const ROW: usize = 12;
const SOME_SECONDS: Duration = Duration::from_secs(7);

type Request = Pin<Box<dyn Future<Output = Result<Guard, LockError>>>>;

async fn asleep(client: &LockClient, fair: bool) -> Request {
    let request = client.lock("k").wait(WAIT);
    let request = if fair { request.fair() } else { request };
    let mut request: Request = Box::pin(request.acquire());
    assert!(polled(1, &mut request).await.is_none());
    request
}

/// Behind a row of unpolled requests, one that is polled. The first lets go.
async fn wait_behind(client: &LockClient, first: Guard) -> Vec<Request> {
    let mut row = Vec::new();
    for _ in 0..ROW {
        row.push(asleep(client, false).await);
    }
    let mut behind = asleep(client, false).await;
    let started = Instant::now();
    first.release().await.unwrap();
    behind.as_mut().await.unwrap().release().await.unwrap();
    assert!(started.elapsed() < SOME_SECONDS, "{:?}", started.elapsed());
    row
}

async fn a_row_of_unpolled_requests_costs_some_seconds(store: Backend) {
    let client = store.client().await;
    let first = client.lock("k").acquire().await.unwrap();
    let row = wait_behind(&client, first).await;
    for request in row {
        request.await.unwrap().release().await.unwrap();
    }
    drop(client);
    store.until_empty().await;
}

/// Each of them has a place of its own there.
async fn a_row_of_unpolled_requests_in_the_stores_queue_costs_some_seconds(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let first = other.lock("k").acquire().await.unwrap();
    let mut row = Vec::new();
    for _ in 0..ROW {
        row.push(asleep(&client, true).await);
    }
    let places = async |places: usize| {
        eventually("each has a place", async || {
            other.inspect("k").await.unwrap().waiting == places
        })
        .await;
    };
    let mut behind = None;
    let queued = async {
        places(ROW).await;
        behind = Some(tokio::spawn(client.lock("k").fair().wait(WAIT).acquire()));
        places(ROW + 1).await;
        // One whose command is under way has the time of the command besides, so they get to see
        // their replies.
        other.health().await.unwrap();
    };
    // All are polled until then: the first would be skipped while the last ones ask the store.
    let any = poll_fn(|cx| {
        let mut answers = row.iter_mut().map(|request| request.as_mut().poll(cx));
        answers.find(Poll::is_ready).unwrap_or(Poll::Pending)
    });
    tokio::select! {
        biased;
        answer = any => panic!("{answer:?}"),
        () = queued => {}
    }
    let started = Instant::now();
    first.release().await.unwrap();
    behind
        .unwrap()
        .await
        .unwrap()
        .unwrap()
        .release()
        .await
        .unwrap();
    assert!(started.elapsed() < SOME_SECONDS, "{:?}", started.elapsed());
    drop((row, client, other));
    store.until_empty().await;
}

async fn a_row_of_unpolled_nested_requests_costs_some_seconds(store: Backend) {
    let client = store.client().await;
    let body = async {
        let first = client.lock("k").acquire().await.unwrap();
        let row = wait_behind(&client, first).await;
        for request in row {
            request.await.unwrap().release().await.unwrap();
        }
    };
    client.lock("k").run(body).await.unwrap();
}

async fn a_nested_request_that_is_skipped_goes_on_when_it_is_polled(store: Backend) {
    let client = store.client().await;
    let body = async {
        let first = client.lock("k").acquire().await.unwrap();
        let skipped = asleep(&client, false).await;
        let second = asleep(&client, false).await;
        first.release().await.unwrap();
        let second = second.await.unwrap();
        let mut third = asleep(&client, false).await;
        let (skipped, ()) = tokio::join!(skipped, async {
            tokio::task::yield_now().await;
            drop(second);
            // It stands behind the third now.
            drop(third.as_mut().await.unwrap());
        });
        assert!(skipped.unwrap().is_held());
        // One whose wait has ended says so.
        let first = client.lock("k").acquire().await.unwrap();
        let short = client.lock("k").wait(Duration::from_millis(200)).acquire();
        let mut short: Request = Box::pin(short);
        assert!(polled(1, &mut short).await.is_none());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(short.await.is_err_and(|error| error.is_busy()));
        drop(first);
    };
    client.lock("k").run(body).await.unwrap();
}

async fn a_nested_body_that_is_not_polled_keeps_its_turn(store: Backend) {
    let client = store.client().await;
    let body = async {
        let mut unpolled = Box::pin(client.lock("k").run(std::future::pending::<()>()));
        assert!(polled(1, &mut unpolled).await.is_none());
        let next = client.lock("k").wait(Duration::from_secs(4)).acquire();
        assert!(next.await.is_err_and(|error| error.is_busy()));
        drop(unpolled);
        client.lock("k").wait(WAIT).run(async {}).await.unwrap();
    };
    client.lock("k").run(body).await.unwrap();
}
