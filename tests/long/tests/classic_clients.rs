//! Other libraries with locks of the recipe `SET NX PX`, each from its own package, beside this one
//! on one key: 20 s with the pauses between tries that it has by itself, and 20 s with short ones.

use std::path::Path;
use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{ClassicLibrary, RedisServer};

const LASTS: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(10);

async fn both_take_turns(library: ClassicLibrary) {
    // One at a time: shares are those of a machine without load.
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one = ONE.lock().await;
    let server = RedisServer::start().await;
    let client = LockClient::builder().url(server.url()).namespace("");
    let client = client.connect().await.expect("the server is up");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for pause in [None, Some(SHORT)] {
        let beside = library.beside(&client, &server, LASTS, pause, target);
        let Some(turns) = beside.await else {
            return;
        };
        let share = 100.0 * turns.smaller_share();
        println!("{library:?}, pause {pause:?}: {turns} (the smaller share is {share:.0} %)");
        assert!(turns.ours > 50 && turns.theirs > 50, "{turns}");
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
