//! What the tasks of requests tell. It stays on their thread, so each test has a recorder of its
//! own.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_runtime::{Guard, LockClient, Rate};
use lock_testkit::{EtcdCluster, ZooKeeperEnsemble, eventually};
use metrics::set_default_local_recorder;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::{assert_values, builder, client, value};

const LABEL: &str = "order:<id>";
const LEADING: &str = r#"lock_leading{template="order:<id>",kind="exclusive"}"#;

#[tokio::test]
async fn each_request_counts_once_by_its_outcome() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let client = client("memory:").await;
    let lock = || client.lock("order:1").label(LABEL);
    let waiting = r#"lock_waiting{template="order:<id>",kind="exclusive"}"#;
    let ended = |outcome| {
        let labels = r#"{template="order:<id>",kind="exclusive",outcome="#;
        let series = ["acquisitions_total", "wait_seconds_count"];
        series.map(|name| value(&recorded, &format!("lock_{name}{labels}\"{outcome}\"}}")))
    };

    let guard = lock().acquire().await.unwrap();
    assert_eq!(ended("granted"), [1.0, 1.0]);
    assert!(lock().try_acquire().await.unwrap().is_none());
    assert_eq!(ended("busy"), [1.0, 1.0]);
    let asking = tokio::spawn(lock().wait_forever().acquire());
    eventually("it waits", async || value(&recorded, waiting) == 1.0).await;
    asking.abort();
    assert!(asking.await.is_err());
    assert_eq!(ended("cancelled"), [1.0, 1.0]);
    let nested = guard.scope(lock().reentrant(false).wait_forever().acquire());
    assert!(nested.await.is_err(), "it would wait for itself");
    assert_eq!(ended("refused"), [1.0, 1.0]);

    let nested = guard.scope(lock().acquire()).await.unwrap();
    drop(nested);
    let asking = tokio::spawn(lock().wait_forever().acquire());
    eventually("it waits", async || value(&recorded, waiting) == 1.0).await;
    guard.release().await.unwrap();
    let guard = asking.await.unwrap().unwrap();
    let held = [
        (waiting, 0.0),
        (r#"lock_held{template="order:<id>",kind="exclusive"}"#, 1.0),
        (r#"lock_grants_total{how="store"}"#, 1.0),
        (r#"lock_grants_total{how="nested"}"#, 1.0),
        (r#"lock_grants_total{how="handed_off"}"#, 1.0),
    ];
    assert_values(&recorded, &held);
    guard.release().await.unwrap();
    assert_eq!(ended("granted"), [3.0, 3.0]);
    let after = [
        (r#"lock_held{template="order:<id>",kind="exclusive"}"#, 0.0),
        (
            r#"lock_hold_seconds_count{template="order:<id>",kind="exclusive"}"#,
            2.0,
        ),
        (
            r#"lock_commands_total{verb="acquire",outcome="ok"}"#,
            value(&recorded, r#"lock_command_seconds_count{verb="acquire"}"#),
        ),
        (r#"lock_commands_total{verb="release",outcome="ok"}"#, 1.0),
        (r#"lock_command_seconds_count{verb="release"}"#, 1.0),
    ];
    assert_values(&recorded, &after);
}

#[tokio::test]
async fn kinds_and_keys_without_a_template_count_apart() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let client = client("memory:").await;
    let lock = client.rw_lock("r");
    let _reads = [
        lock.read().acquire().await.unwrap(),
        lock.read().acquire().await.unwrap(),
    ];
    let _permit = client.semaphore("s", 2).permit().acquire().await.unwrap();
    let _write = client.rw_lock("w").write().acquire().await.unwrap();
    let expected = [
        (r#"lock_held{template="unlabelled",kind="read"}"#, 2.0),
        (r#"lock_held{template="unlabelled",kind="semaphore"}"#, 1.0),
        (r#"lock_held{template="unlabelled",kind="write"}"#, 1.0),
    ];
    assert_values(&recorded, &expected);
}

#[tokio::test]
async fn a_million_keys_of_one_template_are_one_series_each() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let client = client("memory:").await;
    let stock = |product| client.lock(format!("stock:{product}")).label("stock:<n>");
    stock(0).acquire().await.unwrap().release().await.unwrap();
    client.shutdown(Duration::ZERO).await;
    // A client that is shut down refuses at once, and so is fast enough for a million.
    assert!(stock(0).acquire().await.is_err());
    let few = series_of(&recorded);
    for product in 1..1_000_000 {
        assert!(stock(product).acquire().await.is_err());
    }
    assert_eq!(series_of(&recorded), few);
    let refused =
        r#"lock_acquisitions_total{template="stock:<n>",kind="exclusive",outcome="refused"}"#;
    assert_values(&recorded, &[(refused, 1e6)]);
}

#[tokio::test]
async fn twenty_thousand_keys_are_taken_and_are_one_series_each() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let client = client("memory:").await;
    take(&client, 0).await;
    let few = series_of(&recorded);
    for product in 1..20_000 {
        take(&client, product).await;
    }
    assert_eq!(series_of(&recorded), few);
}

async fn take(client: &LockClient, product: u32) {
    let lock = client.lock(format!("stock:{product}")).label("stock:<n>");
    let guard = lock.try_acquire().await.unwrap().unwrap();
    guard.release().await.unwrap();
}

fn series_of(recorded: &PrometheusHandle) -> BTreeSet<String> {
    let text = recorded.render();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.map(|(series, _)| series.to_owned()).collect()
}

#[tokio::test]
async fn a_recorder_installed_late_sees_what_is_held_and_counts_from_then_on() {
    let (client, other) = (client("memory:").await, client("memory:").await);
    let lock = |key| client.lock(key).label(LABEL);
    let guards = [
        lock("order:1").acquire().await.unwrap(),
        lock("order:2").acquire().await.unwrap(),
    ];
    let reads = client.rw_lock("r").read().acquire().await.unwrap();
    let same = other.lock("order:1").label(LABEL).acquire().await.unwrap();

    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let held = r#"lock_held{template="order:<id>",kind="exclusive"}"#;
    let granted =
        r#"lock_acquisitions_total{template="order:<id>",kind="exclusive",outcome="granted"}"#;
    drop(lock("order:3").acquire().await.unwrap());
    let reading = r#"lock_held{template="unlabelled",kind="read"}"#;
    assert_values(&recorded, &[(held, 2.0), (granted, 1.0), (reading, 1.0)]);
    drop(same);
    assert_values(&recorded, &[(held, 2.0)]);
    drop(other.lock("order:1").label(LABEL).acquire().await.unwrap());
    assert_values(&recorded, &[(held, 2.0), (granted, 2.0)]);
    drop((guards, reads));
    assert_values(&recorded, &[(held, 0.0), (reading, 0.0)]);
}

#[tokio::test]
async fn leaders_and_their_terms_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let client = client("memory:").await;
    let lock = || client.lock("order:1").label(LABEL);
    drop(lock().acquire().await.unwrap());
    assert!(
        !recorded.render().contains("lock_leading{"),
        "no leader, no series"
    );
    let led = lock().lead(async |_: &Guard| value(&recorded, LEADING));
    assert_eq!(led.await.unwrap(), 1.0);
    let terms =
        |end| format!(r#"lock_terms_total{{template="order:<id>",kind="exclusive",end="{end}"}}"#);
    assert_values(&recorded, &[(LEADING, 0.0), (&terms("returned"), 1.0)]);

    let mut lost = false;
    let led = lock().lead(async |_: &Guard| {
        if !std::mem::replace(&mut lost, true) {
            assert!(client.force_release("order:1").await.unwrap());
            std::future::pending::<()>().await;
        }
        (value(&recorded, LEADING), value(&recorded, &terms("lost")))
    });
    assert_eq!(led.await.unwrap(), (1.0, 1.0));

    let (begins, began) = tokio::sync::oneshot::channel();
    let mut begins = Some(begins);
    let leads = lock().lead(async |_: &Guard| {
        begins.take().unwrap().send(()).unwrap();
        std::future::pending::<()>().await;
    });
    tokio::select! {
        _ = leads => panic!("it never returns"),
        began = began => began.unwrap(),
    }
    let ended = [
        (LEADING, 0.0),
        (&terms("returned"), 2.0),
        (&terms("lost"), 1.0),
        (&terms("dropped"), 1.0),
    ];
    assert_values(&recorded, &ended);

    // A recorder that is installed in a term.
    let late = PrometheusBuilder::new().build_recorder();
    let (recorded, client) = (late.handle(), &client);
    let led = lock().lead(async |_: &Guard| {
        let _here = set_default_local_recorder(&late);
        drop(client.lock("another").acquire().await);
        value(&recorded, LEADING)
    });
    assert_eq!(led.await.unwrap(), 1.0);
}

/// An alert on `!= 1` sees also a lock that nobody has led yet.
#[tokio::test]
async fn a_lock_that_nobody_leads_has_its_series_from_the_call_of_lead() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let client = client("memory:").await;
    let _taken = client.lock("order:1").acquire().await.unwrap();
    let lock = client.lock("order:1").label(LABEL);
    let stands_by = tokio::spawn(lock.lead(async |_: &Guard| ()));
    eventually("it waits", async || client.stats().waiting == 1).await;
    let zero = format!("{LEADING} 0");
    assert!(recorded.render().contains(&zero), "{}", recorded.render());
    // A recorder that is installed meanwhile.
    let late = PrometheusBuilder::new().build_recorder();
    let _here = set_default_local_recorder(&late);
    drop(client.lock("another").acquire().await);
    let late = late.handle().render();
    assert!(late.contains(&zero), "{late}");
    stands_by.abort();
}

#[tokio::test]
async fn a_rate_and_an_exact_limit_are_the_same_command() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
    let client = client("memory:").await;
    let hour = Duration::from_secs(3600);
    for rate in [Rate::per(1, hour), Rate::at_most(1, hour)] {
        let limiter = client.rate_limiter("partner", rate);
        limiter.acquire().await.unwrap();
        // A refusal is an answer.
        assert_eq!(limiter.acquire().await.unwrap_err().http_status(), 429);
    }
    let asked = [
        (r#"lock_commands_total{verb="rate",outcome="ok"}"#, 4.0),
        (r#"lock_command_seconds_count{verb="rate"}"#, 4.0),
    ];
    assert_values(&recorded, &asked);
}

#[tokio::test]
async fn requests_at_zookeeper_and_etcd_count_as_others() {
    let (zookeeper, etcd) = (ZooKeeperEnsemble::one().await, EtcdCluster::one().await);
    for url in [zookeeper.url(""), etcd.url("")] {
        let recorder = PrometheusBuilder::new().build_recorder();
        let (recorded, _here) = (recorder.handle(), set_default_local_recorder(&recorder));
        let patient = || {
            let builder = builder(&url).command_timeout(Duration::from_secs(5));
            builder.connect_timeout(Duration::from_secs(10)).connect()
        };
        let (client, other) = (patient().await.unwrap(), patient().await.unwrap());
        let lock = |client: &LockClient| client.lock("order:1").label(LABEL);
        let guard = lock(&client).acquire().await.unwrap();
        assert!(lock(&other).try_acquire().await.unwrap().is_none());
        let waiting = r#"lock_waiting{template="order:<id>",kind="exclusive"}"#;
        let asking = tokio::spawn(lock(&other).wait_forever().acquire());
        eventually("it waits", async || value(&recorded, waiting) == 1.0).await;
        guard.release().await.unwrap();
        let next = asking.await.unwrap().unwrap();
        let of = |outcome| {
            let labels = r#"{template="order:<id>",kind="exclusive",outcome="#;
            format!("lock_acquisitions_total{labels}\"{outcome}\"}}")
        };
        let held = [
            (&*of("granted"), 2.0),
            (&*of("busy"), 1.0),
            (waiting, 0.0),
            (r#"lock_held{template="order:<id>",kind="exclusive"}"#, 1.0),
        ];
        assert_values(&recorded, &held);
        // Who waits hears of its turn, or sees it when it looks.
        let grants = ["store", "handed_over"].map(|how| {
            let series = format!("lock_grants_total{{how=\"{how}\"}}");
            value(&recorded, &series)
        });
        assert!(matches!(grants, [1.0, 1.0] | [2.0, 0.0]), "{grants:?}");
        next.release().await.unwrap();
    }
}
