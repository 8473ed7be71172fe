//! The service `observability` as its users see it: what it says of itself, with a store that works
//! and with one that is down, and the span that the program prints.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

#[path = "support/program.rs"]
mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use lock_examples::observability::{install_recorder, service};
use lock_runtime::LockClient;
use lock_runtime::observe::MetricsObserver;
use metrics_exporter_prometheus::PrometheusHandle;
use program::{PASSWORD, Run};
use tokio::time::Instant;
use tower::ServiceExt;

/// A process has one recorder.
fn recorder() -> PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| install_recorder().unwrap()).clone()
}

async fn send(service: &Router, request: &str) -> (u16, String) {
    let (method, uri) = request.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(uri);
    let request = request.body(Body::empty()).unwrap();
    let answer = service.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), 1_000_000).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_request_is_in_the_metrics_by_its_template_and_not_by_its_key() {
    let metrics = recorder();
    let builder = LockClient::builder().url("memory:");
    let locks = builder.observer(MetricsObserver::new()).connect();
    let locks = locks.await.unwrap();
    let service = service(locks.clone(), metrics);
    for product_id in [4_711, 4_712] {
        let bought = send(&service, &format!("POST /buy/{product_id}")).await;
        assert_eq!(bought, (200, format!("bought {product_id}\n")));
    }
    assert_eq!(send(&service, "GET /health").await.0, 200);
    // The observer has heard of everything when its client has ended.
    locks.shutdown(Duration::ZERO).await;

    let of = r#"template="stock:<product_id>",kind="exclusive""#;
    let expected = [
        format!(r#"lock_acquisitions_total{{{of},outcome="granted"}} 2"#),
        format!(r#"lock_wait_seconds_count{{{of},outcome="granted"}} 2"#),
        format!(r#"lock_wait_seconds_bucket{{{of},outcome="granted",le="30"}} 2"#),
        format!(r#"lock_hold_seconds_bucket{{{of},le="0.02"}} 0"#),
        format!(r#"lock_hold_seconds_count{{{of}}} 2"#),
        format!("lock_held{{{of}}} 0"),
        format!("lock_waiting{{{of}}} 0"),
        r#"lock_grants_total{how="store"} 2"#.to_owned(),
        r#"lock_commands_total{verb="acquire",outcome="ok"} 2"#.to_owned(),
        r#"lock_command_seconds_bucket{verb="acquire",le="0.00025"}"#.to_owned(),
        "lock_undo_pending 0".to_owned(),
    ];
    let began = std::time::Instant::now();
    let page = loop {
        let (status, page) = send(&service, "GET /metrics").await;
        assert_eq!(status, 200);
        let missing: Vec<_> = expected
            .iter()
            .filter(|line| !page.contains(*line))
            .collect();
        if missing.is_empty() {
            break page;
        }
        assert!(began.elapsed().as_secs() < 10, "{missing:?} not in\n{page}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    // A sum of seconds may have these digits, too.
    let labels = page.lines().filter_map(|line| line.rsplit_once('}'));
    let mut labels = labels.map(|(labels, _)| labels);
    assert!(!labels.any(|it| it.contains("471")), "a key in:\n{page}");
}

#[tokio::test(start_paused = true)]
async fn health_answers_within_a_second_while_the_store_is_down() {
    let (locks, faults) = LockClient::in_memory_with_faults();
    let service = service(locks, recorder());
    assert_eq!(send(&service, "GET /health").await.0, 200);

    faults.fall_silent();
    let asked = Instant::now();
    let (status, text) = send(&service, "GET /health").await;
    assert_eq!(status, 503, "{text}");
    assert!(asked.elapsed() < Duration::from_secs(1), "{text}");
    assert!(text.contains("held 0\nwaiting 0\n"), "{text}");

    faults.answer();
    assert_eq!(send(&service, "GET /health").await.0, 200);
}

#[test]
fn the_program_prints_the_span_of_a_body_under_its_lock() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_observability"))
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(process.stdout.take().unwrap());
    let mut lines = said.lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let (_, url) = first.split_once("http://").unwrap();
    let (address, _) = url.split_once('/').unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "POST /buy/42 HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("200 OK"), "{answer}");

    // The span is printed before the answer is sent.
    let mut span = String::new();
    for line in lines {
        span += &line;
        span.push('\n');
        if line.contains("lock.outcome") {
            break;
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    for part in [
        "Name         : lock\n",
        r#"lock.key: String(Owned("stock:42"))"#,
        r#"lock.template: String(Owned("stock:<product_id>"))"#,
        "lock.waited_ms: ",
        r#"lock.outcome: String(Owned("ended"))"#,
    ] {
        assert!(span.contains(part), "{part} is not in\n{span}");
    }
}

#[test]
fn bad_arguments_get_a_usage_line_and_show_no_password() {
    let url = format!("http://:{PASSWORD}@127.0.0.1/");
    for arguments in [&["--port", "1"][..], &["--listen", &url], &["--url", &url]] {
        let program = env!("CARGO_BIN_EXE_observability");
        let run = Run::of(Command::new(program).args(arguments));
        run.assert_status(2);
        assert!(run.stderr.contains("Usage: "), "{}", run.stderr);
    }
}
