//! Clients without a queue: the classic recipe in a loop, the default of redis-py's `Lock`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lock_testkit::{RedisServer, eventually};

use crate::client;

/// Deletes the key if it is the caller's.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
    return redis.call('DEL', KEYS[1]) end return 0";

/// How long a classic client sleeps when the key is taken.
const SLEEP: Duration = Duration::from_millis(100);

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_without_a_queue_leaves_a_share_to_the_waiters() {
    let server = Arc::new(RedisServer::start().await);
    let over = Arc::new(AtomicBool::new(false));
    for fair in [false, true] {
        over.store(false, Ordering::Release);
        let ours = client(&server.url()).await;
        let theirs = tokio::spawn(loop_until(Arc::clone(&server), Arc::clone(&over)));
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
        let (ours, theirs) = (visits.into_inner(), theirs.await.unwrap());
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
    let waiting = tokio::spawn(client.lock("k").acquire());
    crate::until_waiting(&client, "k", 1).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let before = server.command_calls("evalsha").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let looks = server.command_calls("evalsha").await - before;
    assert!((4..=9).contains(&looks), "{looks} in two seconds");
    server.command(&["DEL", "lock:k"]).await;
    assert!(waiting.await.unwrap().unwrap().is_held());
}
