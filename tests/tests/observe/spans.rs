//! The span of a body, and what logs and spans show of a key.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, distributed_lock};
use lock_testkit::Log;
use tracing::instrument;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::format::FmtSpan;

/// Hears this thread's spans when they end, and its events.
fn traced() -> (Log, DefaultGuard) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || writer.clone());
    let guard = tracing::subscriber::set_default(subscriber.finish());
    (log, guard)
}

/// The line that says that the span of a body has ended.
fn closed(log: &Log) -> String {
    let text = log.text();
    let closes = ": lock_runtime::observe::span: close ";
    let line = text.lines().find(|line| line.contains(closes));
    line.unwrap_or_else(|| panic!("no span has ended: {text}"))
        .to_owned()
}

#[distributed_lock(key = "stock:<id>", client = client, fence = token)]
async fn body(client: &LockClient, id: &str) -> Result<u64, LockError> {
    tracing::info!("in the body");
    Ok(token.into())
}

#[tokio::test]
async fn a_body_runs_in_a_span_that_says_which_lock_it_has() {
    let (log, _logs) = traced();
    let client = LockClient::in_memory();
    let asked = Instant::now();
    let token = body(&client, "4\n2").await.unwrap();
    let took = asked.elapsed().as_millis();
    let span = closed(&log);
    let (_, waited) = span.split_once("lock.waited_ms=").unwrap();
    let waited: u128 = waited.split(' ').next().unwrap().parse().unwrap();
    assert!(waited <= took, "{waited} of {took} ms: {span}");
    for field in [
        "lock.key=stock:4%0A2".to_owned(),
        "lock.template=\"stock:<id>\"".to_owned(),
        format!("lock.token={token}"),
        "lock.outcome=\"ended\"".to_owned(),
        "otel.kind=\"internal\"".to_owned(),
    ] {
        assert!(span.contains(&field), "{field}: {span}");
    }
    let text = log.text();
    let inside = text
        .lines()
        .find(|line| line.contains("in the body"))
        .unwrap();
    assert!(inside.contains("lock{"), "{inside}");
}

#[tokio::test]
async fn a_span_says_what_became_of_a_body_that_did_not_end() {
    let (log, _logs) = traced();
    let client = LockClient::in_memory();
    let lease = Duration::from_millis(50);
    let lost = client
        .lock("lost")
        .lease(lease)
        .run(std::future::pending::<()>())
        .await;
    assert!(lost.unwrap_err().is_lost());
    let span = closed(&log);
    for field in [
        "lock.outcome=\"lost\"",
        "otel.status_code=\"ERROR\"",
        "error.type=\"lock_lost\"",
    ] {
        assert!(span.contains(field), "{field}: {span}");
    }

    let (log, _logs) = traced();
    let blocks = client.lock("late").lease(lease);
    let late = blocks.run(async { std::thread::sleep(2 * lease) }).await;
    assert!(late.unwrap_err().body_ended());
    assert!(closed(&log).contains("lock.outcome=\"ended_late\""));

    let (log, _logs) = traced();
    let dropped = client.lock("dropped").run(std::future::pending::<()>());
    assert!(tokio::time::timeout(lease, dropped).await.is_err());
    assert!(closed(&log).contains("lock.outcome=\"dropped\""));
}

// Attributes are expanded from above. The upper one changes the body, and the lower one is put
// around the whole.
#[instrument(skip(client))]
#[distributed_lock(key = "k", client = client)]
async fn instrument_above(client: &LockClient) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "k", client = client)]
#[instrument(skip(client))]
async fn instrument_below(client: &LockClient) -> Result<(), LockError> {
    Ok(())
}

/// The line with this text.
fn line(log: &Log, text: &str) -> String {
    let all = log.text();
    let line = all.lines().find(|line| line.contains(text));
    line.unwrap_or_else(|| panic!("no line has {text:?}: {all}"))
        .to_owned()
}

#[tokio::test]
async fn instrument_below_the_attribute_includes_the_wait_and_above_it_does_not() {
    let client = LockClient::in_memory();
    let (log, _logs) = traced();
    instrument_above(&client).await.unwrap();
    assert!(!line(&log, "a lock is asked for").contains("instrument_above"));
    let own = line(&log, "observe::spans: close");
    assert!(
        own.contains("lock{") && own.contains("}:instrument_above:"),
        "{own}"
    );

    let (log, _logs) = traced();
    instrument_below(&client).await.unwrap();
    assert!(line(&log, "a lock is asked for").contains("instrument_below"));
    assert!(
        closed(&log).contains("instrument_below:lock{"),
        "{}",
        closed(&log)
    );
}

#[tokio::test]
async fn no_key_breaks_a_line_of_the_log() {
    let (log, _logs) = traced();
    let client = LockClient::in_memory();
    let key = "a\nINFO forged: line\r\u{1b}[31m\u{2028}";
    let lease = Duration::from_millis(20);
    let request = client.lock(key).lease(lease);
    assert!(request.run(std::future::pending::<()>()).await.is_err());
    client.lock(key).run(async {}).await.unwrap();
    let text = log.text();
    assert!(
        text.contains("lock.key=a\\nINFO forged: line\\r\\u{1b}"),
        "{text}"
    );
    for line in text.lines() {
        let begins_as_a_record = line.starts_with("20") && line.contains('Z');
        assert!(begins_as_a_record, "{line:?}");
    }
    for char in ['\r', '\u{1b}', '\u{2028}'] {
        assert!(!text.contains(char), "{char:?}");
    }
}

#[instrument(skip(client), err)]
#[distributed_lock(key = "k", wait = "0s", reentrant = false, client = client)]
async fn err_above(client: &LockClient) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "k", wait = "0s", reentrant = false, client = client)]
#[instrument(skip(client), err)]
async fn err_below(client: &LockClient) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn the_err_of_instrument_sees_a_busy_lock_only_below_the_attribute() {
    let client = LockClient::in_memory();
    let held = client.lock("k").acquire().await.unwrap();
    let (log, _logs) = traced();
    err_above(&client).await.unwrap_err();
    assert!(!log.text().contains("ERROR"), "{}", log.text());
    err_below(&client).await.unwrap_err();
    let told = line(&log, "ERROR");
    assert!(
        told.contains("err_below") && told.contains("held by"),
        "{told}"
    );
    drop(held);
}

#[tokio::test]
async fn a_lease_below_the_command_timeout_is_told_once() {
    let (log, _logs) = traced();
    let client = LockClient::in_memory();
    let told = || {
        log.text()
            .matches("shorter than the command timeout")
            .count()
    };
    let short = Duration::from_millis(50);
    for (lease, times) in [(10 * short, 0), (short, 1), (short, 1)] {
        let guard = client.lock("k").lease(lease).acquire().await.unwrap();
        guard.release().await.unwrap();
        assert_eq!(told(), times, "{lease:?}");
    }
}

/// It returns nothing, so the log alone says what became of it.
#[distributed_lock(key = "job", lease = "100ms", on_busy = "skip", client = client)]
async fn job(client: &LockClient) {
    std::future::pending::<()>().await;
}

/// Whoever reads that it did not run starts it again.
#[tokio::test]
async fn a_job_that_lost_its_lock_is_not_said_not_to_have_run() {
    let (log, _logs) = traced();
    let client = LockClient::in_memory();
    job(&client).await;
    let text = log.text();
    let told = "a job lost its lock: it ran, in part or to its end";
    assert!(
        text.contains(told) && !text.contains("did not run"),
        "{text}"
    );
    client.shutdown(Duration::ZERO).await;
    job(&client).await;
    let text = log.text();
    assert!(text.contains("a job did not run"), "{text}");
    assert_eq!(text.matches(told).count(), 1, "{text}");
}
