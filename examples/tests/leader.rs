//! The leaders as their users see them: started as a program, and judged by its output and its exit
//! status.
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
fn another_one_leads_when_the_leader_is_killed_stopped_or_cut_off_and_never_two_at_once() {
    let leaders = Run::of(&mut Command::new(env!("CARGO_BIN_EXE_leader")));
    leaders.assert_status(0);
    // A busy machine may end one more.
    assert!(leaders.row("terms") >= 4, "{}", leaders.stdout);
    assert_eq!(leaders.row("side by side"), 0);
    assert!(leaders.row("mails") >= 4, "{}", leaders.stdout);
    for says in [
        "was killed, replica",
        "goes on: its body is stopped",
        "was cut off: its body is stopped",
    ] {
        assert!(leaders.stdout.contains(says), "{}", leaders.stdout);
    }
}

#[test]
fn bad_arguments_get_a_usage_line() {
    for arguments in [&["--replicas"][..], &["replica"], &["leader"]] {
        let leaders = Run::of(Command::new(env!("CARGO_BIN_EXE_leader")).args(arguments));
        leaders.assert_status(2);
        assert!(leaders.stderr.contains("Usage: "), "{}", leaders.stderr);
    }
}
