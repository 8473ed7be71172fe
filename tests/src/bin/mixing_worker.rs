//! Another process of a service, with calls of every kind: `mixing-worker URL KEY MS`. Four tasks
//! call for so long, each at keys of its own, which begin with KEY. So it is known what each call
//! must say. Each makes a new client for each six calls. It says how many calls they were.
#![expect(
    clippy::expect_used,
    reason = "a worker that can't go on ends, and its test fails"
)]

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, Rate};
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, key, millis] = &arguments[..] else {
        unreachable!("mixing-worker URL KEY MS")
    };
    let millis = millis.parse().expect("a number of milliseconds");
    let until = Instant::now() + Duration::from_millis(millis);
    let builder = LockClient::builder().url(url).wait(60 * SECOND);
    let builder = builder.connect_timeout(10 * SECOND);
    let builder = builder.command_timeout(5 * SECOND);
    let mut tasks = JoinSet::new();
    for task in 0..4 {
        let (builder, key) = (builder.clone(), format!("{key}:{task}"));
        tasks.spawn(async move {
            // Each begins with another call, and so does another process.
            let mut call = task + std::process::id() as usize;
            let mut calls = 0;
            while Instant::now() < until {
                let client = builder.clone().connect().await.expect("the store is up");
                for _ in 0..6 {
                    call = (call + 1) % 6;
                    let done = mix(&client, &format!("{key}:{call}"), call).await;
                    done.expect("a call");
                }
                calls += 6;
                call += 1;
            }
            calls
        });
    }
    let calls: usize = tasks.join_all().await.into_iter().sum();
    println!("mixed {calls}");
}

async fn mix(client: &LockClient, key: &str, call: usize) -> Result<(), LockError> {
    match call {
        0 => {
            let guard = client.lock(key).fenced().acquire().await?;
            let holder = client.inspect(key).await?.holder;
            assert!(holder.is_some(), "{key}: {holder:?}");
            guard.extend(60 * SECOND).await?;
            guard.release().await
        }
        1 => {
            let guard = client.lock(key).acquire().await?;
            assert!(client.force_release(key).await?, "{key} is held");
            assert!(!client.force_release(key).await?, "{key} is free");
            drop(guard);
            Ok(())
        }
        2 => {
            let (lock, other) = (client.rw_lock(key), client.rw_lock(key));
            let (one, two) = (lock.read().acquire().await?, other.read().acquire().await?);
            assert_eq!(client.inspect(key).await?.holders, 2, "{key}");
            one.release().await?;
            two.release().await
        }
        3 => {
            let latch = client.latch(key);
            latch.set(2).await?;
            assert_eq!(latch.count_down().await?, 1, "{key}");
            assert_eq!(latch.count_down().await?, 0, "{key}");
            latch.wait(SECOND).await
        }
        4 => {
            let limiter = client.rate_limiter(key, Rate::per_second(1000));
            limiter.wait(10 * SECOND).acquire().await
        }
        _ => {
            let both = [format!("{key}:a"), format!("{key}:b")];
            let guard = client.multi_lock(both).acquire().await?;
            guard.release().await
        }
    }
}
