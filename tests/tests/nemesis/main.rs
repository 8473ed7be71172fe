//! Real processes, a real server, and random faults: what must never happen, and that a mistake
//! would be seen.
#![expect(clippy::panic, reason = "a test that can't go on has failed")]

mod mistakes;
mod postgres;

use std::time::Duration;

use lock_testkit::nemesis::{Engine, Settings, run};

/// One run at a time. Runs load the machine, and their promised times are those of a machine
/// without load.
static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn settings(seed: u64, length: Duration) -> Settings {
    Settings::new(env!("CARGO_BIN_EXE_nemesis-worker"), seed, length)
}

/// Runs until each fault has happened, and until a holder that stood still has come back too late.
/// For longer runs: `bash tests/long/run soak`.
#[tokio::test]
async fn whatever_fails_no_lock_is_held_twice_and_all_workers_go_on() {
    assert_survives(settings(1, Duration::from_secs(10))).await;
}

/// Of so many runs, one says something about locks. ZooKeeper 3.8.0 came to differ in one of 19.
const RUNS: u32 = 3;

async fn assert_survives(settings: Settings) {
    let _one = ONE.lock().await;
    for left in (0..RUNS).rev() {
        let report = run(&settings).await;
        println!("{report}");
        if report.runs_in_vain() == 0 || left == 0 {
            return report.must_be_clean_and_hard_enough(&settings);
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn on_sqlite_no_lock_is_held_twice_and_all_workers_go_on() {
    assert_survives(settings(1, Duration::from_secs(5)).on(Engine::Sqlite)).await;
}

/// Three members, of which one fails at a time.
#[tokio::test]
async fn on_etcd_no_lock_is_held_twice_and_all_workers_go_on() {
    assert_survives(settings(1, Duration::from_secs(10)).on(Engine::Etcd)).await;
}

#[tokio::test]
async fn on_zookeeper_no_lock_is_held_twice_and_all_workers_go_on() {
    assert_survives(settings(1, Duration::from_secs(10)).on(Engine::ZooKeeper)).await;
}
