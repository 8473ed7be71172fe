//! Worker processes end when told, and none of their output is lost.

use super::*;

const WORKER: &str = env!("CARGO_BIN_EXE_lock-worker");

#[tokio::test]
async fn events_are_found_by_their_prefix_and_none_is_lost() {
    let mut worker = ChildProcess::start(WORKER, &[]);
    worker.send("ping one");
    worker.send("nonsense");
    worker.send("ping two");
    assert_eq!(
        worker.wait_for("error:").await.text,
        r#"unknown command "nonsense""#
    );
    assert_eq!(
        worker.wait_for("pong").await.text,
        "one",
        "kept while another event was awaited"
    );
    let (status, rest) = worker.finish().await;
    assert!(status.success());
    let rest: Vec<_> = rest.into_iter().map(|event| event.text).collect();
    assert_eq!(rest, ["pong two"]);
}

#[tokio::test]
async fn a_paused_process_answers_when_resumed_and_not_before() {
    let mut worker = ChildProcess::start(WORKER, &[]);
    worker.send("ping warm");
    worker.wait_for("pong").await;
    worker.pause();
    let sent = Instant::now();
    worker.send("ping now");
    assert!(timeout(A_WHILE, worker.wait_for("pong")).await.is_err());
    worker.resume();
    let event = worker.wait_for("pong").await;
    assert_eq!(event.text, "now");
    assert!(event.at - sent >= A_WHILE);
}

#[tokio::test]
async fn a_killed_or_dropped_process_is_gone_even_if_it_was_paused() {
    for paused in [false, true] {
        let (mut killed, mut dropped) = (
            ChildProcess::start(WORKER, &[]),
            ChildProcess::start(WORKER, &[]),
        );
        let ids = [killed.id(), dropped.id()];
        assert!(ids.into_iter().all(exists));
        if paused {
            killed.pause();
            dropped.pause();
        }
        killed.kill();
        drop(dropped);
        assert!(!ids.into_iter().any(exists), "paused: {paused}");
    }
}

#[tokio::test]
#[should_panic(expected = "the worker ended without")]
async fn waiting_for_an_event_of_a_dead_process_does_not_hang() {
    let mut worker = ChildProcess::start(WORKER, &[]);
    worker.kill();
    worker.wait_for("pong").await;
}
