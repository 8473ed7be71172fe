//! Clients without a queue: the classic recipe in a loop, the default of redis-py's `Lock`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::LockClient;
use lock_testkit::{RedisServer, eventually};

use crate::client;

/// Deletes the key if it is the caller's.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
    return redis.call('DEL', KEYS[1]) end return 0";

/// How long a classic client sleeps when the key is taken.
const SLEEP: Duration = Duration::from_millis(100);

/// How often both sides are let at the key, at most. A busy machine may favour one for a while.
const ROUNDS: u32 = 10;

/// Takes and releases the key as often as it can. Returns how often it did.
async fn loop_until(server: Arc<RedisServer>, over: Arc<AtomicBool>) -> u64 {
    let mut connection = lock_testkit::patient_connection(&server.url()).await;
    let mut visits = 0_u64;
    while !over.load(Ordering::Acquire) {
        let token = format!("another-{visits}");
        let mut set = redis::cmd("SET");
        set.arg("lock:k")
            .arg(&token)
            .arg("NX")
            .arg("PX")
            .arg(10_000);
        let set: Option<String> = set.query_async(&mut connection).await.unwrap();
        if set.is_none() {
            tokio::time::sleep(SLEEP).await;
            continue;
        }
        visits += 1;
        let mut release = redis::cmd("EVAL");
        release.arg(RELEASE).arg(1).arg("lock:k").arg(token);
        let _: i64 = release.query_async(&mut connection).await.unwrap();
    }
    visits
}

/// Both sides at the key, for three seconds. Returns how often ours had it, and how often theirs.
async fn one_round(server: &Arc<RedisServer>, ours: &LockClient, fair: bool) -> (u64, u64) {
    let over = Arc::new(AtomicBool::new(false));
    let theirs = tokio::spawn(loop_until(Arc::clone(server), Arc::clone(&over)));
    eventually("it is at it", async || {
        ours.inspect("k").await.unwrap().holder.is_some()
    })
    .await;
    let visits = AtomicU64::new(0);
    let work = async {
        loop {
            let request = ours.lock("k").wait_forever();
            let request = if fair { request.fair() } else { request };
            request.acquire().await.unwrap().release().await.unwrap();
            visits.fetch_add(1, Ordering::Relaxed);
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(3), work).await;
    over.store(true, Ordering::Release);
    (visits.into_inner(), theirs.await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_without_a_queue_leaves_a_share_to_the_waiters() {
    let server = Arc::new(RedisServer::start().await);
    for fair in [false, true] {
        let client = client(&server.url()).await;
        let (mut ours, mut theirs) = (0, 0);
        for _ in 0..ROUNDS {
            let (more_ours, more_theirs) = one_round(&server, &client, fair).await;
            (ours, theirs) = (ours + more_ours, theirs + more_theirs);
            if 3 * ours >= theirs {
                break;
            }
        }
        println!("ours {ours}, theirs {theirs}");
        assert!(
            3 * ours >= theirs,
            "ours {ours}, theirs {theirs}, fair: {fair}"
        );
    }
}

#[tokio::test]
async fn a_foreign_holder_that_stays_is_looked_at_four_times_a_second() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    server.command(&["SET", "lock:k", "theirs"]).await;
    let waiting = tokio::spawn(client.lock("k").wait(Duration::from_secs(60)).acquire());
    crate::until_waiting(&client, "k", 1).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let began = Instant::now();
    let before = server.command_calls("evalsha").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let looks = server.command_calls("evalsha").await - before;
    // On a busy machine, those were more than four seconds.
    let each_second = looks as f64 / began.elapsed().as_secs_f64();
    assert!((2.0..=4.5).contains(&each_second), "{each_second}");
    server.command(&["DEL", "lock:k"]).await;
    assert!(waiting.await.unwrap().unwrap().is_held());
}
