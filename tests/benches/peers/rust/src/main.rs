//! Locks of other crates, behind the line protocol of ../../README.md.

#[path = "../../worker.rs"]
mod worker;

use std::time::Duration;

use async_redis_lock::{Locker, Options};
use rslock::LockManager;
use worker::{Job, Library};

/// The default of our lock.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone)]
struct Rslock(LockManager);

impl Library for Rslock {
    type Held = rslock::LockGuard;

    async fn acquire(&self, key: &str) -> Self::Held {
        self.0.acquire(key, LEASE).await.expect("the lock")
    }

    async fn release(&self, held: Self::Held) {
        held.release().await;
    }
}

#[derive(Clone)]
struct AsyncRedisLock(Locker, Options);

impl Library for AsyncRedisLock {
    type Held = async_redis_lock::Lock;

    async fn acquire(&self, key: &str) -> Self::Held {
        let lock = self.0.acquire_with_options(&self.1, key).await;
        lock.expect("the lock")
    }

    async fn release(&self, held: Self::Held) {
        held.release().await.expect("the release");
    }
}

fn clock() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let job = Job::read(&arguments[1..], clock, || None);
    match arguments[0].as_str() {
        "rslock" => {
            let manager = LockManager::new(vec![job.url.as_str()]);
            job.run(Rslock(manager)).await;
        }
        "async-redis-lock" => {
            let locker = Locker::from_redis_url(&job.url).await.expect("a locker");
            let options = Options::new().timeout(None).ttl(LEASE).extend(LEASE / 3);
            job.run(AsyncRedisLock(locker, options)).await;
        }
        other => panic!("unknown library {other}"),
    }
}
