//! A rule that finds nothing wrong is wrong itself. Each rule finds the schedule that breaks it.

use std::time::Duration;

use lock_runtime::StoreErrorKind;
use lock_store::{
    Acquire, Acquired, Claim, ClientId, Link, Owner, Queue, Release, Released, Renewal, Renewed,
};
use lock_testkit_core::store_decorator::{Reply, Request};

use super::broken;
use crate::schedule::{Ask, Command, Line, Outcome, Schedule};

const GRANTED: Acquired = Acquired::granted(None);
const QUEUED: Acquired = Acquired::busy(None, true);
const LOST: Outcome = Outcome::Failed {
    at: 0,
    kind: StoreErrorKind::Timeout,
    unknown: true,
};
const DOWN: Outcome = Outcome::Failed {
    at: 0,
    kind: StoreErrorKind::Disconnected,
    unknown: false,
};

fn claim() -> Claim {
    Claim::new(
        "k".into(),
        Owner {
            client: ClientId(7),
            request: 1,
        },
        None,
    )
}

/// A request with a lease of three seconds.
fn request() -> Acquire {
    let mut request = Acquire::new(claim(), Duration::from_secs(3));
    request.first_lease = Duration::from_secs(2);
    request.queue = Queue::Join;
    request
}

fn answered(reply: Reply) -> Outcome {
    let link = Link(0);
    Outcome::Answered { at: 0, reply, link }
}

/// A command whose outcome is known at once.
fn command(at: u64, within: u64, request: Request, mut outcome: Outcome) -> Line {
    if let Outcome::Answered { at: ended, .. } | Outcome::Failed { at: ended, .. } = &mut outcome {
        *ended = at;
    }
    Line::Command(Box::new(Command {
        at,
        within,
        request,
        outcome,
    }))
}

fn acquire(at: u64, reply: Acquired) -> Line {
    let outcome = answered(Reply::Acquire(reply));
    command(at, 500, Request::Acquire(request()), outcome)
}

fn renew(at: u64, within: u64, reply: Renewed) -> Line {
    let lease = Duration::from_secs(3);
    let hold = Renewal::new(claim(), lease);
    let outcome = answered(Reply::Renew(vec![reply]));
    command(at, within, Request::Renew(vec![hold]), outcome)
}

fn release(at: u64) -> Line {
    let (claim, keep) = (claim(), Duration::ZERO);
    let outcome = answered(Reply::Release(vec![Released::Released]));
    let request = Request::Release(vec![Release::new(claim, keep)]);
    command(at, 500, request, outcome)
}

fn abandon(at: u64, outcome: Outcome) -> Line {
    command(at, 500, Request::Abandon(request()), outcome)
}

fn undone() -> Outcome {
    answered(Reply::Abandon(Released::Released))
}

fn ask(at: u64, wait: u64, ended: u64) -> Line {
    Line::Ask(Ask {
        at,
        wait: Some(wait),
        ended: Some(ended),
        has_it: false,
    })
}

/// Checks that a schedule of these lines, which ends after ten seconds, breaks exactly these rules.
#[track_caller]
fn assert_broken(lines: Vec<Line>, rules: &[&str]) {
    let asked = lines.iter().any(|line| matches!(line, Line::Ask(_)));
    let whole = (!asked).then(|| ask(0, 10_000, 10_000));
    let schedule = Schedule {
        title: String::new(),
        lines: whole.into_iter().chain(lines).collect(),
        ends: 10_000,
        stats: None,
    };
    let names: Vec<_> = broken(&schedule).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, rules, "{schedule}");
}

#[test]
fn a_whole_life_breaks_none() {
    let lines = vec![
        ask(0, 3000, 1000),
        acquire(0, QUEUED),
        command(500, 500, Request::Acquire(request()), LOST),
        acquire(1000, GRANTED),
        renew(2000, 500, Renewed::Renewed),
        renew(3000, 500, Renewed::Renewed),
        release(3500),
        abandon(3500, DOWN),
        abandon(5500, undone()),
    ];
    assert_broken(lines, &[]);
}

#[test]
fn a_command_without_time_and_one_with_too_much() {
    for within in [0, 501] {
        let acquired = answered(Reply::Acquire(GRANTED));
        let line = command(0, within, Request::Acquire(request()), acquired);
        assert_broken(vec![line], &["a_command_has_a_time_limit"]);
    }
}

#[test]
fn an_acquire_after_the_wait_or_after_its_request() {
    let late = |ended| {
        vec![
            ask(0, 1000, ended),
            acquire(0, QUEUED),
            acquire(1001, GRANTED),
        ]
    };
    let rules = [
        "nothing_is_asked_for_after_the_wait",
        "a_command_ends_with_its_request",
    ];
    assert_broken(late(2000), &rules);
    assert_broken(late(900), &rules);
}

#[test]
fn a_command_that_outlives_its_request() {
    let lines = vec![ask(0, 1000, 1000), acquire(501, GRANTED)];
    assert_broken(lines, &["a_command_ends_with_its_request"]);
}

#[test]
fn a_try_that_asks_twice() {
    let lines = vec![
        ask(0, 0, 0),
        acquire(0, QUEUED),
        acquire(0, QUEUED),
        abandon(0, undone()),
    ];
    assert_broken(lines, &["a_try_asks_once"]);
}

#[test]
fn a_second_acquire_instead_of_a_renewal() {
    let lines = vec![acquire(0, GRANTED), acquire(1000, GRANTED)];
    assert_broken(lines, &["a_grant_is_asked_for_once"]);
}

#[test]
fn renewals_that_are_late_or_early() {
    let rules = ["a_renewal_comes_at_a_third_of_the_lease"];
    assert_broken(
        vec![
            acquire(0, GRANTED),
            renew(1100, 500, Renewed::Renewed),
            release(1200),
        ],
        &rules,
    );
    let early = vec![
        acquire(0, GRANTED),
        renew(1000, 500, Renewed::Renewed),
        renew(1900, 500, Renewed::Renewed),
        release(2000),
    ];
    assert_broken(early, &rules);
}

#[test]
fn a_watchdog_that_falls_asleep() {
    let lines = vec![acquire(0, GRANTED), renew(1000, 500, Renewed::Renewed)];
    assert_broken(lines, &["what_is_renewed_is_renewed_again"]);
}

#[test]
fn a_renewal_after_the_deadline() {
    let lines = vec![
        acquire(0, GRANTED),
        renew(1000, 500, Renewed::Unanswered),
        renew(2000, 300, Renewed::Unanswered),
        renew(2968, 5, Renewed::Unanswered),
    ];
    assert_broken(lines, &["a_renewal_comes_before_the_deadline"]);
}

#[test]
fn a_renewal_that_takes_all_that_is_left() {
    let lines = vec![
        acquire(0, GRANTED),
        renew(1000, 500, Renewed::Unanswered),
        renew(2000, 400, Renewed::Renewed),
        release(2100),
    ];
    assert_broken(lines, &["a_renewal_leaves_time_for_another"]);
}

#[test]
fn a_renewal_of_what_is_gone() {
    let gone = |at| renew(at, 500, Renewed::Gone);
    let lines = vec![acquire(0, GRANTED), gone(1000), gone(1100)];
    assert_broken(lines, &["what_is_gone_is_not_renewed"]);
}

#[test]
fn a_renewal_after_the_release() {
    let lines = vec![
        acquire(0, GRANTED),
        release(900),
        renew(1000, 500, Renewed::Gone),
    ];
    assert_broken(lines, &["a_release_is_the_last_word"]);
}

#[test]
fn a_lost_reply_and_a_place_that_is_not_undone() {
    let lost = command(0, 500, Request::Acquire(request()), LOST);
    assert_broken(vec![lost], &["what_may_be_held_is_undone"]);
    let lines = vec![ask(0, 1000, 1000), acquire(0, QUEUED)];
    assert_broken(lines, &["what_may_be_held_is_undone"]);
}

#[test]
fn an_undo_that_is_given_up() {
    let lost = command(0, 500, Request::Acquire(request()), LOST);
    let lines = vec![lost, abandon(500, DOWN), abandon(550, DOWN)];
    assert_broken(lines, &["an_undo_is_repeated_until_it_is_answered"]);
}
