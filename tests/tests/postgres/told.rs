//! How soon those who wait are told.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lock_testkit::{PostgresServer, eventually};

use crate::client;

const LONG: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_millis(1500);

/// Says to the process of [`child`] what to do.
const CHILD: &str = "POSTGRES_CHILD";
const URL: &str = "POSTGRES_URL";

/// Not a test of its own: a program that does one thing, and ends at once.
#[test]
fn child() {
    let (Ok(what), Ok(url)) = (std::env::var(CHILD), std::env::var(URL)) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = client(&url).await;
        let (mut line, key) = (String::new(), &*what);
        match &*what {
            "release" => {
                let guard = client.lock(key).acquire().await.unwrap();
                std::io::stdin().read_line(&mut line).unwrap();
                guard.release().await.unwrap();
            }
            "count" => {
                std::io::stdin().read_line(&mut line).unwrap();
                client.latch(key).count_down().await.unwrap();
            }
            _ => {
                std::io::stdin().read_line(&mut line).unwrap();
                assert!(client.force_release(key).await.unwrap());
            }
        }
    });
    std::process::exit(0);
}

/// A program that does this when a line is written to it.
fn program(what: &str, server: &PostgresServer) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "told::child", "--nocapture"])
        .env(CHILD, what)
        .env(URL, server.app_url())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The mean time that it takes a waiter to learn of what a program did at its end.
async fn mean(server: &PostgresServer, what: &str) -> Duration {
    const TIMES: u32 = 5;
    let waiter = client(&server.app_url()).await;
    let holder = client(&server.app_url()).await;
    let mut sum = Duration::ZERO;
    for _ in 0..TIMES {
        let held = match what {
            "release" => None,
            "count" => {
                waiter.latch(what).set(1).await.unwrap();
                None
            }
            _ => Some(holder.lock(what).acquire().await.unwrap()),
        };
        let mut child = program(what, server);
        if what == "release" {
            eventually("it holds the lock", async || {
                waiter.inspect(what).await.unwrap().holder.is_some()
            })
            .await;
        }
        let waiting = waiter.clone();
        let key = what.to_owned();
        let waits = tokio::spawn(async move {
            match key == "count" {
                true => waiting.latch(key).wait(LONG).await.unwrap(),
                false => drop(waiting.lock(key).wait(LONG).acquire().await.unwrap()),
            }
            Instant::now()
        });
        eventually("it waits", async || {
            let all = "SELECT (SELECT count(*) FROM lock_store.place)
                + (SELECT count(*) FROM lock_store.latch_place)";
            server.number(all).await == 1
        })
        .await;
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        let ended = Instant::now();
        sum += waits.await.unwrap().saturating_duration_since(ended);
        drop(held);
        eventually("the key is free", async || {
            let free = "SELECT count(*) FROM lock_store.hold WHERE owner IS NOT NULL";
            server.number(free).await == 0
        })
        .await;
    }
    sum / TIMES
}

/// Whoever misses a message asks again within a second, so half a second later in the mean.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_does_at_its_end_is_told_at_once() {
    let server = PostgresServer::start().await;
    for what in ["release", "count", "force"] {
        let mean = mean(&server, what).await;
        assert!(mean < Duration::from_millis(250), "{what}: {mean:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_ends_by_itself_is_noticed_at_once() {
    let server = PostgresServer::start().await;
    let holder = client(&server.app_url()).await;
    for options in ["", "?listen=off"] {
        let waiter = client(&format!("{}{options}", server.app_url())).await;
        let mut soonest = Duration::MAX;
        for _ in 0..3 {
            let lock = holder.lock("lease").lease(LEASE).renew(false);
            let held = lock.acquire().await.unwrap();
            let granted = Instant::now();
            let next = waiter.lock("lease").wait(LONG).acquire().await.unwrap();
            let after = granted.elapsed();
            next.release().await.unwrap();
            drop(held);
            soonest = soonest.min(after.saturating_sub(LEASE));
        }
        // The machine may be late now and then. Who looked each second would be so each time.
        assert!(
            soonest < Duration::from_millis(150),
            "`{options}`: {soonest:?}"
        );
    }
}
