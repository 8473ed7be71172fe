//! Other libraries with locks of the recipe `SET NX PX`, each from its own package, beside this one
//! on one key: 20 s with the pauses between tries that it has by itself, and 20 s with short ones.

use std::path::Path;
use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{ClassicLibrary, RedisServer};

const LASTS: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(10);
/// Of the turns, with short pauses.
const LEAST_SHARE: f64 = 0.2;

async fn neither_starves(library: ClassicLibrary) {
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
        println!("{library:?}, pause {pause:?}: {turns}");
        assert!(turns.ours > 0 && turns.theirs > 0, "{turns}");
        if pause.is_some() {
            assert!(turns.smaller_share() >= LEAST_SHARE, "{turns}");
        }
    }
}

#[tokio::test]
async fn redis_py() {
    neither_starves(ClassicLibrary::RedisPy).await;
}

#[tokio::test]
async fn redsync() {
    neither_starves(ClassicLibrary::Redsync).await;
}

#[tokio::test]
async fn bsm_redislock() {
    neither_starves(ClassicLibrary::Redislock).await;
}

#[tokio::test]
async fn node_redlock() {
    neither_starves(ClassicLibrary::NodeRedlock).await;
}

#[tokio::test]
async fn rslock() {
    neither_starves(ClassicLibrary::Rslock).await;
}
