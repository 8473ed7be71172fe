//! The flash sale as its users see it: started as a program, and judged by its output and its exit
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

use std::process::Command;
use std::time::{Duration, Instant};

use program::{PASSWORD, Run};
use redis::RedisServer;

#[test]
fn the_default_sale_is_right() {
    let sale = flash_sale(&[]);
    sale.assert_status(0);
    assert_eq!((sale.row("sold"), sale.row("left")), (100, 0));
    assert_eq!(sale.row("oversold"), 0);
    for row in ["duration", "median wait", "worst wait"] {
        assert!(sale.find(row).is_some(), "{row}: {}", sale.stdout);
    }
    assert!(!sale.stdout.contains('\x1b'), "no bar in a pipe");
}

#[test]
fn more_items_than_buyers_leave_some() {
    let sale = flash_sale(&["--buyers", "5", "--items", "8"]);
    sale.assert_status(0);
    assert_eq!((sale.row("sold"), sale.row("left")), (5, 3));
}

#[test]
fn without_the_lock_more_is_sold_than_there_is() {
    let sale = flash_sale(&["--no-lock"]);
    sale.assert_status(0);
    assert_eq!(sale.row("oversold"), sale.row("sold") - 100);
    assert!(sale.row("oversold") > 0, "{}", sale.stdout);
    assert!(sale.row("sold") + sale.row("left") > 100);
    assert!(sale.stdout.contains("This is what the lock prevents"));
}

#[test]
fn bad_arguments_get_a_usage_line_and_show_no_password() {
    let url = "redis://:canary@127.0.0.1:1/";
    for arguments in [
        &["--sell"][..],
        &["--buyers", "many"],
        &["--buyers", "0"],
        &["--items", "0"],
        &["--crash"],
        &["--crash", "--url", url],
        &["--crash", "--processes", "4"],
        &["--crash", "--processes", "1", "--url", url],
        &["--crash", "--no-lock", "--processes", "4", "--url", url],
        &["--processes", "4"],
        &["--processes", "4", "--buyers", "3", "--url", url],
        &["--url", "http://:canary@127.0.0.1/"],
        &["--url", "memory:"],
        &["--processes", url],
        &["process", "--product-id", "1", "--buyers", "1"],
        &[url],
    ] {
        let sale = flash_sale(arguments);
        sale.assert_status(2);
        assert!(sale.stderr.contains("Usage: "), "{}", sale.stderr);
    }
}

#[test]
fn a_redis_that_is_not_there_is_told_at_once() {
    // A free port could be given to another test's server.
    let url = format!("redis://:{PASSWORD}@127.0.0.1:1/");
    let started = Instant::now();
    let sale = flash_sale(&["--url", &url, "--processes", "4"]);
    sale.assert_status(1);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(sale.stderr.contains("no connection"), "{}", sale.stderr);
}

#[test]
fn processes_sell_right_and_leave_nothing_in_redis() {
    let redis = RedisServer::start();
    let sale = flash_sale(&["--url", &redis.url(), "--processes", "4"]);
    sale.assert_status(0);
    assert_eq!((sale.row("sold"), sale.row("left")), (100, 0));
    assert!(redis.ask("KEYS flash_sale*").starts_with("*0\r\n"));
}

#[test]
fn processes_without_the_lock_sell_too_much() {
    let redis = RedisServer::start();
    let sale = flash_sale(&["--url", &redis.url(), "--processes", "4", "--no-lock"]);
    sale.assert_status(0);
    assert!(sale.row("oversold") > 0, "{}", sale.stdout);
}

#[test]
fn the_sale_goes_on_when_a_process_is_killed_with_the_lock() {
    let redis = RedisServer::start();
    let sale = flash_sale(&["--url", &redis.url(), "--processes", "4", "--crash"]);
    sale.assert_status(0);
    assert!(sale.stdout.contains("with SIGKILL while it held the lock"));
    // The rest of the lease of 2 s, without a wait on top: the fallback poll is 1 s.
    let (_, after) = sale
        .stdout
        .split_once("the next buyer got in ")
        .expect(&sale.stdout);
    let waited: f64 = after.split(' ').next().unwrap().parse().unwrap();
    assert!(after.contains(" s after the kill") && (1.0..3.5).contains(&waited));
    // The other processes' 150 buyers are more than there are items.
    assert_eq!((sale.row("sold"), sale.row("left")), (100, 0));
    assert!(
        (1..=50).contains(&sale.row("unfinished")),
        "{}",
        sale.stdout
    );
}

#[test]
fn a_wrong_password_is_refused_without_being_shown() {
    let redis = RedisServer::start();
    let url = redis.url().replace(PASSWORD, "canary-of-another");
    let sale = flash_sale(&["--url", &url, "--processes", "2"]);
    sale.assert_status(1);
    assert!(sale.stderr.contains("denied access"), "{}", sale.stderr);
}

fn flash_sale(arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_flash_sale")).args(arguments))
}
