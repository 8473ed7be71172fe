//! Other libraries with locks of the recipe `SET NX PX`, each from its own package, beside this one
//! on one key: 20 s with the pauses between tries that it has by itself, and 20 s with short ones.

use std::path::Path;
use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{ClassicLibrary, RedisServer};

const SHORT: Duration = Duration::from_millis(10);

/// For `CLASSIC_SECONDS`, or 20 s.
fn lasts() -> Duration {
    let seconds = std::env::var("CLASSIC_SECONDS").ok();
    Duration::from_secs(seconds.map_or(20, |seconds| seconds.parse().expect("a number")))
}

async fn both_take_turns(library: ClassicLibrary) {
    // One at a time: shares are those of a machine without load.
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one = ONE.lock().await;
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (pause, clients, tasks) in [
        (None, 1, 1),
        (None, 1, 2),
        (Some(SHORT), 1, 1),
        (Some(SHORT), 1, 2),
        (Some(SHORT), 2, 2),
    ] {
        let server = RedisServer::start().await;
        let mut ours = Vec::new();
        for _ in 0..clients {
            let client = LockClient::builder().url(server.url()).namespace("");
            let client = client.connect().await.expect("the server is up");
            ours.extend(vec![client; tasks]);
        }
        let beside = library.beside(&ours, &server, lasts(), pause, target);
        let Some(turns) = beside.await else {
            return;
        };
        let share = turns.of_turns();
        let percent = 100.0 * share;
        println!(
            "{library:?}, pause {pause:?}, {clients} clients with {tasks} tasks: {turns} (the \
             smaller share is {percent:.0} %)"
        );
        // A pause of the other library may be much longer than ours leave a key free.
        let passes_on = tasks > 1 && pause.is_none();
        assert!(
            turns.ours > 50 && (passes_on || turns.theirs > 50),
            "{turns}"
        );
        assert!(pause.is_none() || share >= 0.2, "{library:?}: {turns}");
    }
}

#[tokio::test]
async fn redis_py() {
    both_take_turns(ClassicLibrary::RedisPy).await;
}

#[tokio::test]
async fn redsync() {
    both_take_turns(ClassicLibrary::Redsync).await;
}

#[tokio::test]
async fn bsm_redislock() {
    both_take_turns(ClassicLibrary::Redislock).await;
}

#[tokio::test]
async fn node_redlock() {
    both_take_turns(ClassicLibrary::NodeRedlock).await;
}

#[tokio::test]
async fn rslock() {
    both_take_turns(ClassicLibrary::Rslock).await;
}
