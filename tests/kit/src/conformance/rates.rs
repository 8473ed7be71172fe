//! Rate limiters: never more than the rate and the burst, and never less for long.

use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::{
    Decision, KeyFault, LockClient, LockError, LockKey, Rate, RateLimiter, lock_key,
};

super::on_every_store!(
    a_burst_passes_at_once_and_the_next_is_told_when_to_come_back,
    a_caller_that_comes_back_when_told_passes,
    many_tokens_are_taken_all_or_none,
    a_wait_sleeps_until_its_turn_and_passes,
    a_wait_that_is_too_short_takes_nothing_and_is_told_at_once,
    waiters_pass_in_the_order_of_arrival_one_each_interval,
    a_large_request_that_waits_is_not_starved_by_small_ones,
    all_clients_of_a_key_count_together_and_other_keys_do_not,
    a_lock_and_a_limiter_can_share_a_key,
    looking_takes_nothing,
    a_dropped_wait_loses_its_turn_and_nothing_else,
    another_rate_finds_the_bucket_at_worst_empty,
    another_rate_does_not_overtake_waiters,
    a_bucket_that_is_full_again_leaves_nothing_behind,
    a_shutdown_ends_waiting_requests_and_refuses_new_ones,
    keys_that_cannot_be_used_are_refused,
    rates_that_cannot_work_are_config_errors,
);

const MS: Duration = Duration::from_millis(1);
/// Gives nothing back while a test runs.
const SLOW: Rate = Rate::per(1, Duration::from_secs(600));
const SLOW_INTERVAL: Duration = Duration::from_secs(600);

fn retry_after(result: Result<(), LockError>) -> Duration {
    match result {
        Err(LockError::RateLimited { retry_after, .. }) => retry_after,
        other => panic!("{other:?}"),
    }
}

/// Asks until it is refused, and returns what that call was told. On a slow machine some calls pass
/// before it, each an interval after the one before. The last one that passed was `asked` then.
pub(super) async fn refused(
    limiter: &RateLimiter,
    interval: Duration,
    mut asked: Instant,
) -> Duration {
    loop {
        let next = Instant::now();
        match limiter.acquire().await {
            Ok(()) => {
                let after = asked.elapsed();
                assert!(after + 5 * MS >= interval, "it passed after {after:?}");
                asked = next;
            }
            refused => return retry_after(refused),
        }
    }
}

async fn remaining(client: &LockClient, key: &str, rate: Rate) -> u32 {
    match client.rate_limiter(key, rate).try_permits(0).await {
        Ok(Decision::Passed { remaining, .. }) => remaining,
        other => panic!("{other:?}"),
    }
}

async fn a_burst_passes_at_once_and_the_next_is_told_when_to_come_back(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", SLOW.burst(5));
    let started = Instant::now();
    for left in (0..5).rev() {
        match limiter.try_acquire().await.unwrap() {
            Decision::Passed { remaining, .. } => assert_eq!(remaining, left),
            other => panic!("{other:?}"),
        }
    }
    for _ in 0..3 {
        let error = limiter.acquire().await.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the rate limit \"k\" is used up; try again in "),
            "{error}"
        );
        let after = retry_after(Err(error));
        assert!(
            after <= SLOW_INTERVAL && after + started.elapsed() >= SLOW_INTERVAL,
            "{after:?}"
        );
    }
    assert!(!limiter.try_acquire().await.unwrap().passed());
}

async fn a_caller_that_comes_back_when_told_passes(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", Rate::per_second(5).burst(1));
    let mut asked = Instant::now();
    limiter.acquire().await.unwrap();
    for _ in 0..3 {
        let after = refused(&limiter, 200 * MS, asked).await;
        assert!(after <= 200 * MS, "{after:?}");
        tokio::time::sleep(after).await;
        asked = Instant::now();
        limiter.acquire().await.unwrap();
    }
}

async fn many_tokens_are_taken_all_or_none(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", SLOW.burst(10));
    let started = Instant::now();
    limiter.permits(7).await.unwrap();
    let after = retry_after(limiter.permits(5).await);
    assert!(after <= 2 * SLOW_INTERVAL && after + started.elapsed() >= 2 * SLOW_INTERVAL);
    limiter.permits(3).await.unwrap();
    assert!(!limiter.try_acquire().await.unwrap().passed());
    assert!(matches!(
        limiter.permits(11).await,
        Err(LockError::Config { .. })
    ));
}

async fn a_wait_sleeps_until_its_turn_and_passes(store: Backend) {
    let client = store.client().await;
    let interval = 300 * MS;
    let limiter = client
        .rate_limiter("k", Rate::per(1, interval))
        .wait(Duration::from_secs(20));
    let started = Instant::now();
    for turn in 0..4 {
        limiter.acquire().await.unwrap();
        assert!(
            started.elapsed() >= turn * interval,
            "{turn}: {:?}",
            started.elapsed()
        );
    }
    assert!(
        started.elapsed() < 3 * interval + 1500 * MS,
        "{:?}",
        started.elapsed()
    );
}

async fn a_wait_that_is_too_short_takes_nothing_and_is_told_at_once(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", SLOW).wait(SLOW_INTERVAL / 2);
    limiter.acquire().await.unwrap();
    let started = Instant::now();
    for _ in 0..10 {
        let after = retry_after(limiter.acquire().await);
        assert!(after <= SLOW_INTERVAL && after >= SLOW_INTERVAL / 2);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "a call slept");
}

/// When the next one would pass, if nobody else asked. On a slow machine it may take its turn.
async fn next_turn(limiter: &RateLimiter) -> Instant {
    loop {
        let now = Instant::now();
        if let Decision::Limited { retry_after, .. } = limiter.try_acquire().await.unwrap() {
            return now + retry_after;
        }
    }
}

async fn waiters_pass_in_the_order_of_arrival_one_each_interval(store: Backend) {
    let client = store.client().await;
    let interval = 300 * MS;
    let limiter = client
        .rate_limiter("k", Rate::per(1, interval))
        .wait(Duration::from_secs(60));
    // The store counts from a later moment.
    let started = Instant::now();
    limiter.acquire().await.unwrap();
    let mut waiting = Vec::new();
    for turn in 1..=5_u32 {
        let (waits, free) = (limiter.clone(), next_turn(&limiter).await);
        waiting.push(tokio::spawn(async move {
            waits.acquire().await.unwrap();
            (turn, Instant::now())
        }));
        eventually("it has its turn, before the next one asks", async || {
            next_turn(&limiter).await > free + interval / 2
        })
        .await;
    }
    // Of two that changed places one would come too early.
    for waiter in waiting {
        let (turn, at) = waiter.await.unwrap();
        let early = (started + turn * interval).saturating_duration_since(at);
        assert!(early < 5 * MS, "{turn} came {early:?} before its turn");
    }
}

async fn a_large_request_that_waits_is_not_starved_by_small_ones(store: Backend) {
    let client = store.client().await;
    let rate = Rate::per_second(50).burst(25);
    let (small, large) = (
        client.rate_limiter("k", rate),
        client.rate_limiter("k", rate).wait(Duration::from_secs(30)),
    );
    let greedy = tokio::spawn(async move {
        loop {
            let _ = small.try_acquire().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    eventually("the bucket is empty", async || {
        remaining(&client, "k", rate).await == 0
    })
    .await;
    for _ in 0..3 {
        tokio::time::timeout(Duration::from_secs(20), large.permits(20))
            .await
            .expect("it gets its turn")
            .unwrap();
    }
    greedy.abort();
}

async fn all_clients_of_a_key_count_together_and_other_keys_do_not(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let elsewhere = store.builder().namespace("other").connect().await.unwrap();
    for client in [&a, &b, &a, &b] {
        client
            .rate_limiter("k", SLOW.burst(4))
            .acquire()
            .await
            .unwrap();
    }
    for client in [&a, &b] {
        retry_after(client.rate_limiter("k", SLOW.burst(4)).acquire().await);
    }
    for (client, key) in [(&a, "other"), (&b, "{k}"), (&elsewhere, "k")] {
        assert_eq!(remaining(client, key, SLOW.burst(4)).await, 4);
        client
            .rate_limiter(key, SLOW.burst(4))
            .permits(4)
            .await
            .unwrap();
    }
}

async fn a_lock_and_a_limiter_can_share_a_key(store: Backend) {
    let client = store.client().await;
    for key in ["k", "{tenant}:k"] {
        let guard = client.lock(key).fenced().acquire().await.unwrap();
        client
            .rate_limiter(key, SLOW.burst(2))
            .acquire()
            .await
            .unwrap();
        assert!(client.lock(key).try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        assert_eq!(remaining(&client, key, SLOW.burst(2)).await, 1);
        assert!(client.inspect(key).await.unwrap().holder.is_none());
    }
}

async fn looking_takes_nothing(store: Backend) {
    let client = store.client().await;
    assert_eq!(remaining(&client, "k", SLOW.burst(3)).await, 3);
    assert_eq!(store.leftovers().await, 0);
    client
        .rate_limiter("k", SLOW.burst(3))
        .permits(2)
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(remaining(&client, "k", SLOW.burst(3)).await, 1);
    }
}

async fn a_dropped_wait_loses_its_turn_and_nothing_else(store: Backend) {
    let client = store.client().await;
    let interval = Duration::from_secs(2);
    let rate = Rate::per(1, interval);
    let limiter = client.rate_limiter("k", rate).wait(Duration::from_secs(60));
    // The store counts from when it was asked, and its answer may be late.
    let before = Instant::now();
    limiter.acquire().await.unwrap();
    let taken = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire().await }
    });
    eventually("it took its turn", async || {
        let Decision::Limited { retry_after, .. } = limiter.try_acquire().await.unwrap() else {
            return false;
        };
        retry_after > interval
    })
    .await;
    taken.abort();
    // The turn after the lost one, and no later.
    limiter.acquire().await.unwrap();
    let took = before.elapsed();
    assert!(took >= interval * 7 / 4, "{took:?}");
    assert!(took < interval * 3, "{took:?}");
    store.until_empty().await;
}

async fn another_rate_finds_the_bucket_at_worst_empty(store: Backend) {
    let client = store.client().await;
    // Ten minutes from empty to full, and then a rate that takes 100 ms for that.
    let slow = client.rate_limiter("k", SLOW);
    slow.acquire().await.unwrap();
    let fast = client.rate_limiter("k", Rate::per_second(50).burst(5));
    let after = fast.try_acquire().await.unwrap();
    match after {
        Decision::Limited { retry_after, .. } => assert!(retry_after <= 20 * MS, "{after:?}"),
        // The machine was so slow that a token was there.
        Decision::Passed { .. } => {}
    }
    eventually("a token is there", async || {
        fast.try_acquire().await.unwrap().passed()
    })
    .await;
    // A larger burst that was used up costs a smaller one no more than the smaller burst.
    client
        .rate_limiter("b", Rate::per_second(1).burst(1000))
        .permits(1000)
        .await
        .unwrap();
    let small = client.rate_limiter("b", Rate::per_second(10).burst(2));
    eventually("a token is there", async || {
        small.try_acquire().await.unwrap().passed()
    })
    .await;
    // And a bucket in use stays in use.
    let wide = client.rate_limiter("c", SLOW.burst(10));
    wide.permits(3).await.unwrap();
    retry_after(client.rate_limiter("c", SLOW.burst(3)).acquire().await);
    client
        .rate_limiter("c", SLOW.burst(4))
        .acquire()
        .await
        .unwrap();
    assert_eq!(remaining(&client, "c", SLOW.burst(10)).await, 6);
}

async fn another_rate_does_not_overtake_waiters(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", SLOW).wait(3 * SLOW_INTERVAL);
    limiter.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire().await }
    });
    eventually("it took its turn", async || {
        retry_after(limiter.clone().wait(Duration::ZERO).acquire().await) > SLOW_INTERVAL
    })
    .await;
    let other = client.rate_limiter("k", Rate::per_second(1000).burst(100));
    let after = retry_after(other.acquire().await);
    assert!(
        after > SLOW_INTERVAL - Duration::from_secs(60),
        "after the one who waits: {after:?}"
    );
    let after = retry_after(limiter.clone().wait(Duration::ZERO).acquire().await);
    assert!(after > SLOW_INTERVAL, "and nothing was changed: {after:?}");
    waiting.abort();
}

async fn a_bucket_that_is_full_again_leaves_nothing_behind(store: Backend) {
    let client = store.client().await;
    // They are counted long before they are full.
    let rate = Rate::per(1, Duration::from_secs(2)).burst(2);
    for key in ["a", "{b}:c"] {
        client.rate_limiter(key, rate).permits(2).await.unwrap();
    }
    assert_eq!(store.leftovers().await, 2);
    store.until_empty().await;
    client.rate_limiter("a", rate).permits(2).await.unwrap();
}

async fn a_shutdown_ends_waiting_requests_and_refuses_new_ones(store: Backend) {
    let client = store.client().await;
    let limiter = client.rate_limiter("k", SLOW).wait(3 * SLOW_INTERVAL);
    limiter.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire().await }
    });
    eventually("it took its turn", async || {
        retry_after(limiter.clone().wait(Duration::ZERO).acquire().await) > SLOW_INTERVAL
    })
    .await;
    tokio::join!(
        async {
            let ended = waiting.await.unwrap();
            assert!(matches!(ended, Err(LockError::Shutdown)), "{ended:?}");
        },
        client.shutdown(Duration::ZERO)
    );
    assert!(matches!(limiter.acquire().await, Err(LockError::Shutdown)));
    assert!(matches!(
        limiter.try_acquire().await,
        Err(LockError::Shutdown)
    ));
}

async fn keys_that_cannot_be_used_are_refused(store: Backend) {
    let client = store.client().await;
    let empty = "";
    let bad: [(LockKey, KeyFault); 5] = [
        ("".into(), KeyFault::Empty),
        (
            lock_key!("api:<empty>"),
            KeyFault::EmptyPlaceholder("empty"),
        ),
        ("x".repeat(513).into(), KeyFault::TooLong(513)),
        ("%rate".into(), KeyFault::ReservedPrefix),
        ("a{b".into(), KeyFault::Braces),
    ];
    for (key, expected) in bad {
        match client.rate_limiter(&key, SLOW).acquire().await {
            Err(LockError::InvalidKey { fault, .. }) => assert_eq!(fault, expected),
            other => panic!("{key:?}: {other:?}"),
        }
    }
    assert_eq!(store.leftovers().await, 0);
}

async fn rates_that_cannot_work_are_config_errors(store: Backend) {
    let client = store.client().await;
    for rate in [
        Rate::per_second(0),
        Rate::per_second(1).burst(0),
        Rate::per(1, Duration::ZERO),
        Rate::per_second(2_000_000),
        Rate::per(1, Duration::MAX),
        Rate::per_hour(1).burst(1000),
    ] {
        let limiter = client.rate_limiter("k", rate);
        assert!(matches!(
            limiter.acquire().await,
            Err(LockError::Config { .. })
        ));
        assert!(matches!(
            limiter.try_acquire().await,
            Err(LockError::Config { .. })
        ));
    }
    // The longest bucket, the fastest rate and the longest wait work.
    for (key, rate) in [
        ("long", Rate::per_hour(1).burst(720)),
        ("fast", Rate::per_second(1_000_000)),
    ] {
        let limiter = client.rate_limiter(key, rate).wait(Duration::MAX);
        limiter.permits(720).await.unwrap();
    }
    let full = retry_after(
        client
            .rate_limiter("long", Rate::per_hour(1).burst(720))
            .permits(720)
            .await,
    );
    assert!(full > Duration::from_secs(719 * 3600) && full <= Duration::from_secs(720 * 3600));
    eventually("the fast one is full again", async || {
        store.leftovers().await == 1
    })
    .await;
}
