//! A process of a service that forks while it has a client: `forking-worker URL`.
//!
//! It takes `kept`, `dropped` and others, forks, and prints what the child's copies of the client
//! and of the guards do: `child WHAT HOW`. Then it prints whether the parent still has its locks:
//! `parent KEY HOW`.
#![expect(
    clippy::expect_used,
    reason = "a worker that can't go on ends, and its test fails"
)]

use std::fmt::Debug;
use std::time::Duration;

use fork::{Fork, fork, waitpid};
use lock_runtime::{Guard, LockClient, LockError, Rate};
use tokio::runtime::{Builder, Runtime};

/// Longer than any refusal in the child takes.
const AT_ONCE: Duration = Duration::from_secs(2);

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all();
    builder.build().expect("a runtime")
}

fn main() {
    let url = std::env::args().nth(1).expect("the URL of a store");
    let runtime = runtime();
    let (client, guards) = runtime.block_on(async {
        let client = LockClient::builder().url(url).connect().await;
        let client = client.expect("the store is up");
        let take = async |key| client.lock(key).acquire().await.expect("a free lock");
        let guards = [
            take("kept").await,
            take("released").await,
            take("dropped").await,
            client
                .rw_lock("written")
                .write()
                .acquire()
                .await
                .expect("a free lock"),
        ];
        (client, guards)
    });
    match fork().expect("a child process") {
        Fork::Child => {
            self::child(client, guards);
            std::process::exit(0);
        }
        Fork::Parent(child) => {
            // The parent uses the next request number. The child's copy has the same one.
            let next = runtime.block_on(client.lock("next").fenced().acquire());
            let next = next.expect("a free lock");
            waitpid(child).expect("the child ends");
            runtime.block_on(parent(guards.into_iter().chain([next])));
        }
    }
}

fn child(client: LockClient, [kept, released, dropped, written]: [Guard; 4]) {
    // The parent's runtime has no thread here that would drive it.
    runtime().block_on(async {
        let asked = [
            (
                "try",
                tried(client.lock("next").fenced().try_acquire()).await,
            ),
            ("acquire", tried(client.lock("other").acquire()).await),
            (
                "several",
                tried(client.multi_lock(["a", "b"]).acquire()).await,
            ),
            ("latch", tried(client.latch("open").wait(AT_ONCE)).await),
            (
                "rate",
                tried(client.rate_limiter("rate", Rate::per_second(1)).acquire()).await,
            ),
            ("inspect", tried(client.inspect("kept")).await),
            ("health", tried(client.health()).await),
            ("extend", tried(kept.extend(10 * AT_ONCE)).await),
            ("downgrade", tried(written.downgrade()).await),
            ("release", tried(released.release()).await),
        ];
        for (what, how) in asked {
            say(&format!("child {what} {how}"));
        }
        drop(dropped);
        drop(kept);
        let shutdown = async {
            client.shutdown(AT_ONCE).await;
            Ok(())
        };
        say(&format!("child shutdown {}", tried(shutdown).await));
        drop(client);
        say("child done");
    });
}

/// The result of a call.
async fn tried<T: Debug>(call: impl Future<Output = Result<T, LockError>>) -> String {
    match tokio::time::timeout(AT_ONCE, call).await {
        Err(_) => "hangs".to_owned(),
        Ok(Ok(done)) => format!("{done:?}"),
        Ok(Err(LockError::Config { .. })) => "refused".to_owned(),
        Ok(Err(error)) => format!("{error:?}"),
    }
}

async fn parent(guards: impl Iterator<Item = Guard>) {
    for guard in guards {
        let key = guard.key().clone();
        let how = match guard.release().await {
            Ok(()) => "held".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        say(&format!("parent {} {how}", key.as_str()));
    }
}

fn say(event: &str) {
    println!("{event}");
}
