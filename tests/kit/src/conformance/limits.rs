//! Rate limiters with an exact limit: in no window more than the limit, and the whole limit in
//! each.

use std::time::{Duration, Instant};

use super::rates::refused;
use crate::{Backend, eventually};
use lock_runtime::{Decision, LockClient, LockError, Rate, RateLimiter};

super::on_every_store!(
    no_window_has_more_than_the_limit_and_each_has_all_of_it,
    waiters_pass_as_soon_as_the_window_lets_them,
    the_whole_limit_passes_at_once_and_the_next_is_told_when_to_come_back,
    many_tokens_pass_all_or_none,
    a_large_limit_is_kept_with_few_lines,
    another_limit_sees_what_has_passed,
    a_limit_and_a_bucket_of_one_key_count_apart,
    a_limit_of_which_nothing_counts_leaves_nothing_behind,
    limits_that_cannot_work_are_config_errors,
);

const MS: Duration = Duration::from_millis(1);
/// Longer than a test.
const LONG: Duration = Duration::from_secs(600);

fn retry_after(result: Result<(), LockError>) -> Duration {
    match result {
        Err(LockError::RateLimited { retry_after, .. }) => retry_after,
        other => panic!("{other:?}"),
    }
}

async fn remaining(client: &LockClient, rate: Rate) -> u32 {
    match client.rate_limiter("k", rate).try_permits(0).await {
        Ok(Decision::Passed { remaining, .. }) => remaining,
        other => panic!("{other:?}"),
    }
}

/// A call that passed: it began after the first, and had passed by the second.
type Pass = (Instant, Instant);

async fn ask_until(limiter: RateLimiter, end: Instant) -> Vec<Pass> {
    let mut passes = Vec::new();
    while Instant::now() < end {
        let began = Instant::now();
        match limiter.acquire().await {
            Ok(()) => passes.push((began, Instant::now())),
            Err(LockError::RateLimited { retry_after, .. }) => {
                tokio::time::sleep(retry_after.min(5 * MS)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    passes
}

/// Several callers on two clients, for some windows. What passed by the store's clock lies within
/// the times that are taken here.
async fn keep_to(store: &Backend, limit: u32, window: Duration, wait: Duration) {
    const WINDOWS: u32 = 6;
    let clients = [store.client().await, store.client().await];
    let rate = Rate::at_most(limit, window);
    let end = Instant::now() + WINDOWS * window;
    let asking: Vec<_> = (0..8)
        .map(|caller| {
            let limiter = clients[caller % 2].rate_limiter("k", rate).wait(wait);
            tokio::spawn(ask_until(limiter, end))
        })
        .collect();
    let mut passes: Vec<Pass> = Vec::new();
    for asking in asking {
        passes.extend(asking.await.unwrap());
    }
    for (first, _) in &passes {
        let inside = passes
            .iter()
            .filter(|(from, to)| from >= first && *to < *first + window);
        let count = inside.count();
        assert!(count <= limit as usize, "{count} in a window");
    }
    // Also on a slow machine.
    let all = (WINDOWS * limit) as usize;
    assert!(passes.len() >= all / 2, "{} of {all}", passes.len());
}

async fn no_window_has_more_than_the_limit_and_each_has_all_of_it(store: Backend) {
    keep_to(&store, 6, 500 * MS, Duration::ZERO).await;
}

async fn waiters_pass_as_soon_as_the_window_lets_them(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", Rate::at_most(2, 400 * MS));
    let waits = limiter.clone().wait(Duration::from_secs(30));
    let started = Instant::now();
    limiter.permits(2).await.unwrap();
    for turn in 1..=3 {
        waits.permits(2).await.unwrap();
        let elapsed = started.elapsed();
        assert!(elapsed >= turn * 400 * MS, "{turn}: {elapsed:?}");
    }
    let elapsed = started.elapsed();
    assert!(elapsed < 1200 * MS + 1500 * MS, "{elapsed:?}");
    // Whoever would wait for too long takes nothing.
    let after = retry_after(limiter.clone().wait(MS).permits(2).await);
    assert!(after <= 400 * MS, "{after:?}");
}

async fn the_whole_limit_passes_at_once_and_the_next_is_told_when_to_come_back(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", Rate::at_most(5, LONG));
    let started = Instant::now();
    for left in (0..5).rev() {
        match limiter.try_acquire().await.unwrap() {
            Decision::Passed { remaining, .. } => assert_eq!(remaining, left),
            other => panic!("{other:?}"),
        }
    }
    for _ in 0..3 {
        let after = retry_after(limiter.acquire().await);
        assert!(after <= LONG && after + started.elapsed() >= LONG);
    }
    // Come back when told.
    let quick = client.rate_limiter("q", Rate::at_most(1, 200 * MS));
    let mut asked = Instant::now();
    quick.acquire().await.unwrap();
    for _ in 0..3 {
        let after = refused(&quick, 200 * MS, asked).await;
        assert!(after <= 200 * MS, "{after:?}");
        tokio::time::sleep(after).await;
        asked = Instant::now();
        quick.acquire().await.unwrap();
    }
}

async fn many_tokens_pass_all_or_none(store: Backend) {
    let client = store.client().await;
    let rate = Rate::at_most(10, LONG);
    let limiter = client.rate_limiter("k", rate);
    assert_eq!(remaining(&client, rate).await, 10);
    assert_eq!(store.leftovers().await, 0, "looking takes nothing");
    limiter.permits(7).await.unwrap();
    retry_after(limiter.permits(4).await);
    assert_eq!(remaining(&client, rate).await, 3);
    limiter.permits(3).await.unwrap();
    retry_after(limiter.acquire().await);
    assert_eq!(remaining(&client, rate).await, 0);
}

async fn a_large_limit_is_kept_with_few_lines(store: Backend) {
    keep_to(&store, 200, 600 * MS, Duration::ZERO).await;
}

async fn another_limit_sees_what_has_passed(store: Backend) {
    let client = store.client().await;
    let three = client.rate_limiter("k", Rate::at_most(3, LONG));
    three.permits(2).await.unwrap();
    assert_eq!(remaining(&client, Rate::at_most(5, LONG)).await, 3);
    assert_eq!(remaining(&client, Rate::at_most(3, LONG)).await, 1);
    retry_after(
        client
            .rate_limiter("k", Rate::at_most(2, LONG))
            .acquire()
            .await,
    );
    // Within its own window.
    let short = client.rate_limiter("k", Rate::at_most(2, 100 * MS));
    eventually("they passed long ago", async || {
        short.try_acquire().await.unwrap().passed()
    })
    .await;
}

async fn a_limit_and_a_bucket_of_one_key_count_apart(store: Backend) {
    let client = store.client().await;
    let bucket = client.rate_limiter("k", Rate::per(1, LONG));
    let limit = client.rate_limiter("k", Rate::at_most(1, LONG));
    let guard = client.lock("k").acquire().await.unwrap();
    for limiter in [&bucket, &limit] {
        limiter.acquire().await.unwrap();
        retry_after(limiter.acquire().await);
    }
    guard.release().await.unwrap();
}

async fn a_limit_of_which_nothing_counts_leaves_nothing_behind(store: Backend) {
    let client = store.client().await;
    for key in ["a", "{b}:c"] {
        let limiter = client.rate_limiter(key, Rate::at_most(2, 400 * MS));
        limiter.permits(2).await.unwrap();
    }
    store.until_empty().await;
}

async fn limits_that_cannot_work_are_config_errors(store: Backend) {
    let client = store.client().await;
    for rate in [
        Rate::at_most(0, LONG),
        Rate::at_most(10_001, LONG),
        Rate::at_most(1, Duration::ZERO),
        Rate::at_most(1, Duration::MAX),
        Rate::at_most(5, LONG).burst(2),
    ] {
        let refused = client.rate_limiter("k", rate).acquire().await;
        assert!(matches!(refused, Err(LockError::Config { .. })));
    }
    // The largest limit and the longest window.
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    let limiter = client.rate_limiter("k", Rate::at_most(10_000, month));
    limiter.permits(10_000).await.unwrap();
    let after = retry_after(limiter.permits(10_000).await);
    assert!(after <= month && after > month - LONG, "{after:?}");
}
