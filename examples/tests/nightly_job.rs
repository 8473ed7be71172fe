//! The nightly job as its users see it: started as a program, and judged by its output and its exit
//! status.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

#[path = "support/program.rs"]
mod program;
#[path = "support/redis.rs"]
mod redis;

use std::fs;
use std::path::Path;
use std::process::Command;

use program::{PASSWORD, Run};
use redis::RedisServer;

#[test]
fn exactly_one_process_runs_each_tick_and_its_own_redis_is_gone_afterwards() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nightly_job");
    fs::create_dir_all(&folder).unwrap();
    let nights = Run::of(
        Command::new(env!("CARGO_BIN_EXE_nightly_job"))
            .args(["--ticks", "2"])
            .env("TMPDIR", &folder),
    );
    nights.assert_status(0);
    for (row, number) in [("ticks", 2), ("ran", 2), ("skipped", 4)] {
        assert_eq!(nights.row(row), number, "{row}: {}", nights.stdout);
    }
    assert_eq!((nights.row("run twice"), nights.row("missed")), (0, 0));
    assert_eq!(nights.stdout.matches("  ran: process ").count(), 2);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn without_hold_at_least_a_tick_is_run_again_by_a_slower_clock() {
    let redis = RedisServer::start();
    let nights = nightly_job(&["--no-hold", "--ticks", "1", "--url", &redis.url()]);
    nights.assert_status(0);
    assert_eq!(nights.row("run twice"), 1, "{}", nights.stdout);
    assert!(nights.row("ran") > 1, "{}", nights.stdout);
    assert!(
        nights
            .stdout
            .contains("This is what hold_at_least prevents")
    );
    assert!(redis.ask("KEYS *").starts_with("*0\r\n"));
}

#[test]
fn bad_arguments_get_a_usage_line_and_show_no_password() {
    let url = format!("redis://:{PASSWORD}@127.0.0.1:1/");
    for arguments in [
        &["--nights"][..],
        &["--ticks", "0"],
        &["--every", "7"],
        &["--every", "60"],
        &["--every", "4"],
        &["--skew", "2"],
        &["--skew", "-1"],
        &["--url", "memory:"],
        &["--url", "http://:canary@127.0.0.1/"],
        &["--every", &url],
        &["process", "--shop", "1", "--every", "6", "--fast", "0"],
        &[&url],
    ] {
        let nights = nightly_job(arguments);
        nights.assert_status(2);
        assert!(nights.stderr.contains("Usage: "), "{}", nights.stderr);
    }
}

#[test]
fn options_that_do_not_fit_say_which_would() {
    let nights = nightly_job(&["--skew", "2"]);
    assert!(nights.stderr.contains("1 is the most"), "{}", nights.stderr);
    let nights = nightly_job(&["--every", "4"]);
    assert!(
        nights.stderr.contains("5 is the least"),
        "{}",
        nights.stderr
    );
}

#[test]
fn without_a_redis_it_says_what_to_do() {
    let url = format!("redis://:{PASSWORD}@127.0.0.1:1/");
    let nights = nightly_job(&["--url", &url]);
    nights.assert_status(1);
    assert!(nights.stderr.contains("no connection"), "{}", nights.stderr);

    let nights = Run::of(Command::new(env!("CARGO_BIN_EXE_nightly_job")).env("PATH", "/nowhere"));
    nights.assert_status(1);
    for what_to_do in ["install one", "--url redis://"] {
        assert!(nights.stderr.contains(what_to_do), "{}", nights.stderr);
    }
}

fn nightly_job(arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_nightly_job")).args(arguments))
}
