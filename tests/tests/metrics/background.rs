//! What happens in the background. It is told on the observers' thread, so these tests share the
//! process's recorder.

use std::sync::LazyLock;
use std::time::Duration;

use lock_runtime::LockClient;
use lock_runtime::observe::MetricsObserver;
use lock_testkit::{Port, RedisServer, eventually};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::{client, value};

static RECORDED: LazyLock<PrometheusHandle> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().unwrap());

async fn until(series: &str, expected: f64) {
    let what = format!("{series} is {expected}");
    eventually(&what, async || value(&RECORDED, series) == expected).await;
}

async fn until_any(series: &str) {
    let what = format!("{series} is not zero");
    eventually(&what, async || value(&RECORDED, series) > 0.0).await;
}

#[tokio::test]
async fn a_loss_counts_by_its_reason() {
    LazyLock::force(&RECORDED);
    let client = client("memory:").await;
    let lock = |key: &str| client.lock(key.to_owned()).label("loss:<why>");
    let gone = lock("gone").acquire().await.unwrap();
    client.force_release("gone").await.unwrap();
    assert!(gone.release().await.is_err());
    let short = Duration::from_secs(2);
    let long = lock("max").lease(short).renew(true).max_hold(2 * short);
    let _long = long.acquire().await.unwrap();
    let expires = lock("lease").renew(false).lease(short);
    let _expires = expires.acquire().await.unwrap();
    for reason in ["gone", "max_hold", "expired"] {
        let lost = format!(
            r#"lock_lost_total{{template="loss:<why>",kind="exclusive",reason="{reason}"}}"#
        );
        until(&lost, 1.0).await;
    }
    until(r#"lock_held{template="loss:<why>",kind="exclusive"}"#, 0.0).await;
    let ended = r#"lock_hold_seconds_count{template="loss:<why>",kind="exclusive"}"#;
    until(ended, 3.0).await;

    let _ends = lock("end").acquire().await.unwrap();
    client.shutdown(Duration::ZERO).await;
    until(
        r#"lock_lost_total{template="loss:<why>",kind="exclusive",reason="shutdown"}"#,
        1.0,
    )
    .await;
}

#[tokio::test]
async fn a_server_that_fails_is_seen_in_commands_connections_and_undos() {
    LazyLock::force(&RECORDED);
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let lock = |key: &str| client.lock(key.to_owned()).label("server:<key>");
    let renewed = lock("renewed")
        .lease(Duration::from_millis(600))
        .renew(true);
    let renewed = renewed.acquire().await.unwrap();
    until_any(r#"lock_renewals_total{on_time="true"}"#).await;
    renewed.release().await.unwrap();
    until("lock_connections", 1.0).await;

    let guard = lock("held").lease(Duration::from_secs(60)).acquire().await;
    server.kill();
    until("lock_connections", 0.0).await;
    assert!(lock("asked").acquire().await.is_err());
    let labels = r#"{template="server:<key>",kind="exclusive",outcome="unavailable"}"#;
    until(&format!("lock_acquisitions_total{labels}"), 1.0).await;
    let disconnected = r#"lock_commands_total{verb="acquire",outcome="disconnected"}"#;
    assert!(value(&RECORDED, disconnected) >= 1.0);
    drop(guard);
    until_any("lock_undo_pending").await;

    server.restart().await;
    until("lock_connections", 1.0).await;
    let server = server.addr();
    until(
        &format!(r#"lock_reconnects_total{{server="{server}"}}"#),
        1.0,
    )
    .await;
    until("lock_undo_pending", 0.0).await;
    client.shutdown(Duration::ZERO).await;
    assert_eq!(value(&RECORDED, "lock_connections"), 0.0);
    // What a client told is taken back when it ends.
    drop(client);
    until("lock_connections", 0.0).await;
}

#[tokio::test]
async fn a_client_without_a_store_has_its_gauges_from_the_start() {
    LazyLock::force(&RECORDED);
    let nobody = Port::free();
    let builder = LockClient::builder().url(format!("redis://127.0.0.1:{}/", nobody.number()));
    let client = builder.observer(MetricsObserver::new()).connect_lazy();
    eventually("the gauges are there", async || {
        let text = RECORDED.render();
        ["\nlock_connections ", "\nlock_undo_pending "]
            .iter()
            .all(|gauge| text.contains(gauge))
    })
    .await;
    assert!(!client.unwrap().stats().connected);
}
