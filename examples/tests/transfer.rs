//! The transfers as their users see them: started as a program, and judged by its output and its
//! exit status.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

#[path = "support/program.rs"]
mod program;

use std::process::Command;

use program::Run;

#[test]
fn money_is_conserved_and_no_task_is_stuck() {
    let day = transfer(&["--seconds", "10"]);
    day.assert_status(0);
    assert_eq!(
        (day.row("money before"), day.row("money after")),
        (8000, 8000)
    );
    assert_eq!(day.row("stuck"), 0);
    assert!(day.row("fewest of a task") > 0, "{}", day.stdout);
    assert!(day.stdout.contains("32 tasks, 8 accounts, with the locks"));
}

#[test]
fn without_the_locks_money_appears_or_vanishes() {
    let day = transfer(&["--no-lock", "--seconds", "1"]);
    day.assert_status(0);
    assert_ne!(day.row("money after"), day.row("money before"));
    assert!(day.stdout.contains("This is what the locks prevent"));
}

#[test]
fn bad_arguments_get_a_usage_line() {
    for arguments in [
        &["--accounts"][..],
        &["--tasks", "0"],
        &["--tasks", "many"],
        &["--seconds", "0"],
        &["money"],
    ] {
        let day = transfer(arguments);
        day.assert_status(2);
        assert!(day.stderr.contains("Usage: "), "{}", day.stderr);
    }
}

fn transfer(arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_transfer")).args(arguments))
}
