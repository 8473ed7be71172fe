//! How soon who waits hears of a release.

use std::time::{Duration, Instant};

use lock_runtime::LockClient;

use crate::eventually;

/// The fastest of ten hand-overs from one client to another: from calling `release` to having the
/// lock.
///
/// # Panics
/// If a lock can't be had.
pub async fn fastest_hand_over(from: &LockClient, to: &LockClient) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let guard = from.lock("k").acquire().await.expect("it is free");
        let waiter = tokio::spawn(to.lock("k").acquire());
        eventually("it waits", async || {
            let found = from.inspect("k").await;
            found.is_ok_and(|found| found.waiting == 1)
        })
        .await;
        let began = Instant::now();
        guard.release().await.expect("it is held");
        let next = waiter.await.expect("it ends").expect("it gets the lock");
        fastest = fastest.min(began.elapsed());
        next.release().await.expect("it is held");
    }
    fastest
}
