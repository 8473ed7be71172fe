//! What the requests of a key share.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_store::{Link, StoreErrorKind};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn answer<T>(value: T) -> Result<Answer<T>, Failure> {
    let link = Link(1);
    Ok(Answer::new(value, link))
}

fn failed<T>(kind: StoreErrorKind) -> Result<Answer<T>, Failure> {
    Err(Failure::without_effect(StoreError::new(kind, "a test")))
}

fn busy() -> Result<Answer<Acquired>, Failure> {
    answer(Acquired::busy(None, true))
}

fn found(holder: Option<&str>) -> Result<Answer<Option<Inspection>>, Failure> {
    let held = |holder: &str| Inspection::held(holder.to_owned(), None, 0);
    answer(Some(holder.map_or(Inspection::free(0), held)))
}

fn now<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// What is known at once to a request that came then; `None` if the store must be looked at.
fn known(key: &KeyLiveness, since: Instant) -> Option<Said> {
    let looked = Cell::new(false);
    let known = now(pin!(key.known(since, since, |_| looked.set(true))));
    assert_eq!(known.is_none(), looked.get());
    known
}

#[test]
fn what_one_was_told_lately_holds_for_all() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start + 10 * MS, false, false, &busy());
    assert!(matches!(known(&key, start + 10 * MS), Some(Said::Taken)));
    assert!(known(&key, start + 11 * MS).is_none());
}

#[test]
fn all_count_from_the_first_command_that_failed_after_the_last_answer() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start, false, false, &busy());
    for at in [5, 6, 7] {
        key.note(
            start + at * MS,
            false,
            false,
            &failed(StoreErrorKind::Timeout),
        );
    }
    let since = key.failing(start).map(|failing| failing.since);
    assert_eq!(since, Some(start + 5 * MS));
    assert!(matches!(known(&key, start), Some(Said::Failing(_))));
    key.note(start + 8 * MS, false, false, &busy());
    assert!(key.failing(start).is_none());
}

#[test]
fn a_look_ends_silence_and_not_a_refusal() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start, false, false, &failed(StoreErrorKind::OutOfMemory));
    key.looked(0, start + MS, false, &found(None));
    assert!(matches!(known(&key, start), Some(Said::Failing(_))));
    key.note(start + 2 * MS, false, false, &busy());
    key.note(
        start + 3 * MS,
        false,
        false,
        &failed(StoreErrorKind::Timeout),
    );
    key.looked(0, start + 4 * MS, false, &found(None));
    assert!(matches!(known(&key, start + 4 * MS), Some(Said::Alive)));
    key.looked(0, start + 5 * MS, false, &found(Some("somebody")));
    assert!(matches!(known(&key, start + 4 * MS), Some(Said::Taken)));
}

#[test]
fn a_silence_that_was_met_before_a_request_came_says_nothing_to_it() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start, false, false, &failed(StoreErrorKind::Timeout));
    assert!(matches!(known(&key, start), Some(Said::Failing(_))));
    assert!(known(&key, start + MS).is_none());
    key.note(start, false, false, &failed(StoreErrorKind::OutOfMemory));
    assert!(matches!(known(&key, start + MS), Some(Said::Failing(_))));
}

#[test]
fn nothing_is_known_of_before_anybody_waited() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start, false, false, &failed(StoreErrorKind::Timeout));
    key.forget();
    // A look that was called for before ends after that.
    key.looked(0, start + MS, false, &failed(StoreErrorKind::Timeout));
    assert!(key.failing(start).is_none() && key.answered().is_none());
    assert!(known(&key, start).is_none());
}

#[test]
fn one_looks_for_all() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    let looks = Cell::new(0);
    let mut all =
        [(); 3].map(|()| Box::pin(key.known(start, start, |_| looks.set(looks.get() + 1))));
    for one in &mut all {
        assert!(now(one.as_mut()).is_none());
    }
    assert_eq!(looks.get(), 1);
    key.looked(0, start, false, &found(Some("somebody")));
    for one in &mut all {
        assert!(matches!(now(one.as_mut()), Some(Said::Taken)));
    }
}

#[test]
fn a_command_that_was_lost_before_another_was_answered_is_no_failure() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start + MS, false, false, &busy());
    key.note(start, false, false, &failed(StoreErrorKind::Timeout));
    assert!(key.failing(start).is_none());
    key.note(start + MS, false, false, &failed(StoreErrorKind::Timeout));
    assert!(key.failing(start).is_some());
}

#[test]
fn a_failure_that_nobody_meets_again_is_forgotten_and_what_a_stop_makes_is_none() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start, true, false, &failed(StoreErrorKind::Timeout));
    assert!(key.failing(start).is_none() && key.silent_since().is_none());
    key.note(start, false, false, &failed(StoreErrorKind::Denied));
    assert!(key.failing(start + 4999 * MS).is_some());
    assert!(key.failing(start + 5001 * MS).is_none());
    assert!(known(&key, start + 5001 * MS).is_none());
}
