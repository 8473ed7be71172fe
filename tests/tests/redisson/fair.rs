//! `RFairLock`: the order of arrival, over both sides.

use std::time::Duration;

use lock_testkit::{RedisServer, eventually};

use crate::{Java, client};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_order_of_arrival_holds_over_both_sides() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    let queued = async |length: usize| {
        eventually("it is in the queue", async || {
            let now: usize = server.query(&["LLEN", "redisson_lock_queue:{k}"]).await;
            now == length
        })
        .await;
    };
    let held = ours.lock("k").fair().acquire().await.unwrap();
    java.begin("t1", "take fair k 60000 -1");
    queued(1).await;
    let second = tokio::spawn(ours.lock("k").fair().acquire());
    queued(2).await;
    java.begin("t2", "take fair k 60000 -1");
    queued(3).await;
    let fourth = tokio::spawn(ours.lock("k").fair().acquire());
    queued(4).await;
    held.release().await.unwrap();
    assert!(java.answer("t1").await.starts_with("took"));
    assert!(!second.is_finished());
    assert_eq!(java.ask("t1", "give fair k").await, "gave");
    let second = second.await.unwrap().unwrap();
    assert!(!fourth.is_finished());
    second.release().await.unwrap();
    assert!(java.answer("t2").await.starts_with("took"));
    assert!(!fourth.is_finished());
    assert_eq!(java.ask("t2", "give fair k").await, "gave");
    fourth.await.unwrap().unwrap().release().await.unwrap();
    assert!(server.keys("*").await.is_empty());
}
