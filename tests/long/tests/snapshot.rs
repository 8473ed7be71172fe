//! A report keeps a snapshot of the database open for a minute, and the locks' rows can't be
//! cleaned up meanwhile.
#![expect(clippy::expect_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_testkit::{PostgresServer, StoreUnderTest};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const SNAPSHOT: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_go_on_under_a_snapshot_that_is_open_for_a_minute() {
    let server = PostgresServer::start().await;
    let ends = Instant::now() + STEP + SNAPSHOT;
    let granted = Arc::<AtomicU64>::default();
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let client = server.builder().connect().await.expect("the server is up");
        for task in 0..8 {
            let (client, granted) = (client.clone(), Arc::clone(&granted));
            tasks.spawn(async move {
                while Instant::now() < ends {
                    let lock = client.lock(format!("k:{}", task % 4)).fenced();
                    let guard = lock.wait(SNAPSHOT).acquire().await.expect("a lock");
                    guard.release().await.expect("it is held");
                    granted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }
    let in_a_step = async || {
        let before = granted.load(Ordering::Relaxed);
        sleep(STEP).await;
        granted.load(Ordering::Relaxed) - before
    };
    println!("{} in {STEP:?} without a snapshot", in_a_step().await);
    let report = server.session().await;
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM lock_store.hold";
    report.batch_execute(snapshot).await.expect("a snapshot");
    while Instant::now() + STEP / 2 < ends {
        let granted = in_a_step().await;
        println!("{granted} in {STEP:?} with it");
        assert!(granted > 0);
    }
    report.batch_execute("COMMIT").await.expect("its end");
    tasks.join_all().await;
}
