//! The payments as their users see them: started as a program beside a real PostgreSQL, and judged
//! by its output and its exit status.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

#[path = "support/program.rs"]
mod program;

use std::process::Command;

use lock_testkit::PostgresServer;
use program::Run;

fn payment(arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_payment")).args(arguments))
}

#[tokio::test]
async fn a_payment_whose_lock_is_lost_is_refused_by_the_database() {
    let server = PostgresServer::bare().await;
    let day = payment(&["--url", &server.url()]);
    day.assert_status(0);
    assert_eq!(day.row("paid"), 40);
    assert_eq!(day.find("refused"), Some("true"), "{}", day.stdout);
    assert_eq!((day.row("before"), day.row("after")), (4000, 4000));
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let day = payment(&["--url", "postgres://a:canary@127.0.0.1:1/bank"]);
    day.assert_status(1);
    assert!(day.stderr.contains("127.0.0.1:1"), "{}", day.stderr);
}
