//! When a waiter counts as one that nobody polls, and what becomes of what it had.

use std::pin::pin;
use std::task::Context;
use std::time::Duration;

use lock_store::{Link, Trust};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn grant() -> HeardGrant {
    HeardGrant {
        trust: Trust::Ask(Link(0)),
        token: None,
        after: None,
    }
}

/// What happens between two looks of the patrol.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    /// The waiter is woken.
    Woken,
    /// It is polled, and empties its inbox.
    Reacts,
    /// It is polled while it waits for the store's answer.
    Polled,
    /// It begins to do something else.
    Does(Doing),
}

/// Whether each look found the waiter overdue: one at each of these milliseconds, with this before
/// it.
fn overdue(start: Instant, doing: Doing, is_first: bool, looks: &[(Between, u32)]) -> Vec<bool> {
    let signal = Signal::new(doing);
    let look = |(between, at): &(Between, u32)| {
        match *between {
            Between::Nothing => {}
            Between::Woken => drop(signal.wake_up()),
            Between::Reacts => drop(signal.take()),
            Between::Polled => {
                let mut polls = pin!(signal.poll_answer(std::future::pending::<()>(), || false));
                let waker = Waker::noop();
                assert!(
                    polls
                        .as_mut()
                        .poll(&mut Context::from_waker(waker))
                        .is_pending()
                );
            }
            Between::Does(doing) => signal.note_doing(doing),
        }
        signal.is_overdue(start + *at * MS, is_first)
    };
    looks.iter().map(look).collect()
}

#[test]
fn who_has_something_to_do_at_two_looks_and_does_nothing_between_them_is_overdue() {
    use Between::{Does, Nothing, Polled, Reacts, Woken};
    let start = Instant::now();
    let at = |milliseconds: u32| start + milliseconds * MS;
    let (asks, looks, sleeps) = (
        Doing::Asks(at(10)),
        Doing::Looks(at(10)),
        Doing::Sleeps(at(10)),
    );
    for (doing, seen, expected) in [
        // Its time is over at the instant itself, and only if it was seen before.
        (
            asks,
            &[(Nothing, 10), (Nothing, 11)][..],
            &[false, true][..],
        ),
        (asks, &[(Nothing, 1), (Nothing, 10)], &[false, true]),
        (asks, &[(Nothing, 1), (Nothing, 9)], &[false, false]),
        (asks, &[(Nothing, 10), (Polled, 20)], &[false, false]),
        (asks, &[(Nothing, 10), (Does(looks), 20)], &[false, false]),
        (looks, &[(Nothing, 1), (Nothing, 10)], &[false, true]),
        (looks, &[(Nothing, 1), (Nothing, 9)], &[false, false]),
        (looks, &[(Nothing, 20)], &[false]),
        (sleeps, &[(Nothing, 1), (Nothing, 10)], &[false, true]),
        (sleeps, &[(Nothing, 1), (Nothing, 9)], &[false, false]),
        (sleeps, &[(Nothing, 20)], &[false]),
        // One that was woken has something to do at once.
        (sleeps, &[(Woken, 1), (Nothing, 2)], &[false, true]),
        (sleeps, &[(Woken, 1), (Woken, 2)], &[false, true]),
        (
            sleeps,
            &[(Woken, 1), (Reacts, 2), (Nothing, 3)],
            &[false, false, false],
        ),
        (sleeps, &[(Nothing, 1), (Woken, 2)], &[false, false]),
    ] {
        assert_eq!(
            overdue(start, doing, true, seen),
            expected,
            "{doing:?}, {seen:?}"
        );
    }
}

#[test]
fn who_is_not_the_first_need_only_heed_an_answer_and_what_it_was_given() {
    let start = Instant::now();
    let late = |signal: &Signal| {
        signal.is_overdue(start + MS, false) | signal.is_overdue(start + MS, false)
    };
    for (doing, overdue) in [
        (Doing::Asks(start), true),
        (Doing::Looks(start), false),
        (Doing::Sleeps(start), false),
    ] {
        assert_eq!(late(&Signal::new(doing)), overdue, "{doing:?}");
        let given = Signal::new(doing);
        drop(given.on_granted(grant()));
        assert!(late(&given), "{doing:?}");
    }
}

#[test]
fn what_was_used_is_not_taken_and_what_was_taken_is_not_used() {
    let signal = Signal::new(Doing::Sleeps(Instant::now()));
    assert!(!signal.was_skipped());
    assert!(signal.claim() && signal.claim());
    assert!(signal.skip().is_none());
    let signal = Signal::new(Doing::Sleeps(Instant::now()));
    drop(signal.on_granted(grant()));
    let taken = signal.skip();
    assert!(taken.is_some_and(|taken| !taken.is_unanswered && taken.asked.is_none()));
    assert!(signal.was_skipped() && !signal.claim());
    // It hears of this, and of nothing that comes later.
    drop(signal.on_granted(grant()));
    signal.recheck();
    let inbox = signal.take();
    assert!(inbox.skipped && inbox.granted.is_none() && !inbox.recheck);
}

#[test]
fn the_command_of_a_waiter_that_is_skipped_is_known() {
    let now = Instant::now();
    let signal = Signal::new(Doing::Sleeps(now));
    let (link, tokens, wait) = (Link(3), 2, Some(MS));
    signal.note_asking(now, AskedStore { link, tokens, wait });
    let taken = signal.skip();
    assert!(taken.as_ref().is_some_and(|taken| taken.is_unanswered));
    let asked = taken.and_then(|taken| taken.asked);
    assert!(asked.is_some_and(|asked| asked.link == link && asked.tokens == tokens));
}

#[test]
fn an_inbox_is_emptied_once() {
    let signal = Signal::new(Doing::Sleeps(Instant::now()));
    drop(signal.on_granted(grant()));
    assert!(signal.take().granted.is_some());
    assert!(signal.take().granted.is_none());
    assert!(!signal.filled.load(Ordering::Acquire));
    signal.recheck();
    assert!(signal.take_before_reply() && !signal.take_before_reply());
}
