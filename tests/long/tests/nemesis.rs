//! The test program `nemesis`, for a minute on each engine.

use std::time::Duration;

use lock_testkit::nemesis::{Engine, Settings, run};

async fn a_minute(engine: Engine) {
    // One run at a time: their promised times are those of a machine without load.
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one = ONE.lock().await;
    let program = env!("CARGO_BIN_EXE_soak");
    let settings = Settings::new(program, 1, Duration::from_secs(60)).on(engine);
    let report = run(&settings).await;
    println!("{engine:?}\n{report}");
    report.must_be_clean_and_hard_enough(&settings);
}

#[tokio::test]
async fn whatever_fails_for_a_minute_no_lock_is_held_twice_and_all_workers_go_on() {
    a_minute(Engine::Redis).await;
}

#[tokio::test]
async fn the_same_under_sentinels() {
    a_minute(Engine::Sentinel).await;
}

#[tokio::test]
async fn the_same_where_replicas_confirm() {
    a_minute(Engine::Replicas).await;
}

#[tokio::test]
async fn the_same_in_a_cluster() {
    a_minute(Engine::Cluster).await;
}

#[tokio::test]
async fn the_same_on_a_quorum() {
    a_minute(Engine::Quorum).await;
}

#[tokio::test]
async fn the_same_on_postgresql() {
    a_minute(Engine::Postgres).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_same_on_sqlite() {
    a_minute(Engine::Sqlite).await;
}

#[tokio::test]
async fn the_same_on_etcd() {
    a_minute(Engine::Etcd).await;
}

#[tokio::test]
async fn the_same_on_zookeeper() {
    a_minute(Engine::ZooKeeper).await;
}
