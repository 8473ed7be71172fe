//! What the requests of a key share.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_store::{Answer, FoundHolder, Link, Replied, StoreErrorKind};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn answer<T>(value: T) -> Replied<T> {
    let link = Link(1);
    Ok(Answer::new(value, link))
}

fn failed<T>(kind: StoreErrorKind) -> Replied<T> {
    Err(Failure::without_effect(StoreError::new(kind, "a test")))
}

fn busy() -> Replied<Acquired> {
    answer(Acquired::busy(None, true))
}

fn found(holder: Option<&str>) -> Replied<Option<LockFound>> {
    let foreign = |holder: &str| FoundHolder::Foreign(holder.to_owned());
    let held = |holder: &str| LockFound::held(foreign(holder), None, 0);
    answer(Some(holder.map_or(LockFound::free(0), held)))
}

fn now<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn silence<T>() -> Replied<T> {
    failed(StoreErrorKind::Timeout)
}

/// How a command that was sent then ended.
fn note(key: &KeyLiveness, sent: Instant, result: &Replied<Acquired>) {
    key.note(sent, || false, false, result);
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
    note(&key, start + 10 * MS, &busy());
    assert!(matches!(known(&key, start + 10 * MS), Some(Said::Taken)));
    assert!(known(&key, start + 11 * MS).is_none());
}

#[test]
fn all_count_from_the_first_command_that_failed_after_the_last_answer() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    note(&key, start, &busy());
    for at in [5, 6, 7] {
        note(&key, start + at * MS, &silence());
    }
    let since = key.failing(start, || start).map(|failing| failing.since);
    assert_eq!(since, Some(start + 5 * MS));
    assert!(matches!(known(&key, start), Some(Said::Failing(_))));
    note(&key, start + 8 * MS, &busy());
    assert!(key.failing(start, || start).is_none());
}

#[test]
fn a_look_ends_silence_and_not_a_refusal() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    note(&key, start, &failed(StoreErrorKind::OutOfMemory));
    key.note_look(0, start + MS, false, &found(None));
    assert!(matches!(known(&key, start), Some(Said::Failing(_))));
    note(&key, start + 2 * MS, &busy());
    note(&key, start + 3 * MS, &silence());
    key.note_look(0, start + 4 * MS, false, &found(None));
    assert!(matches!(
        known(&key, start + 4 * MS),
        Some(Said::Alive { .. })
    ));
    key.note_look(0, start + 5 * MS, false, &found(Some("somebody")));
    assert!(matches!(known(&key, start + 4 * MS), Some(Said::Taken)));
}

#[test]
fn what_was_met_before_a_request_came_says_nothing_to_it() {
    let start = Instant::now();
    for (kind, fails) in [
        (StoreErrorKind::Timeout, true),
        (StoreErrorKind::OutOfMemory, true),
        (StoreErrorKind::Denied, true),
        (StoreErrorKind::Contended, false),
    ] {
        let key = KeyLiveness::default();
        note(&key, start, &failed(kind));
        assert!(matches!(
            known(&key, start),
            Some(Said::Failing(_) | Said::Contended(_))
        ));
        assert_eq!(key.failing(start, || start).is_some(), fails);
        assert!(known(&key, start + MS).is_none());
        assert!(key.failing(start + MS, || start + MS).is_none());
        // The store still answers a question about the key.
        key.note_look(0, start + MS, false, &found(None));
        assert!(matches!(known(&key, start + MS), Some(Said::Alive { .. })));
    }
}

#[test]
fn nothing_is_known_of_before_anybody_waited() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    note(&key, start, &silence());
    key.forget();
    // A look that was called for before ends after that.
    key.note_look(0, start + MS, false, &silence());
    assert!(key.failing(start, || start).is_none() && key.answered().is_none());
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
    key.note_look(0, start, false, &found(Some("somebody")));
    for one in &mut all {
        assert!(matches!(now(one.as_mut()), Some(Said::Taken)));
    }
}

#[test]
fn a_command_that_was_lost_before_another_was_answered_is_no_failure() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    note(&key, start + MS, &busy());
    note(&key, start, &silence());
    assert!(key.failing(start, || start).is_none());
    note(&key, start + MS, &silence());
    assert!(key.failing(start, || start).is_some());
}

#[test]
fn a_failure_that_nobody_meets_again_is_forgotten_and_what_a_stop_makes_is_none() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note(start, || true, false, &silence());
    assert!(key.failing(start, || start).is_none() && key.silence().is_none());
    note(&key, start, &failed(StoreErrorKind::Denied));
    assert!(key.failing(start, || start + 4999 * MS).is_some());
    assert!(key.failing(start, || start + 5001 * MS).is_none());
    assert!(key.said(start, start + 5001 * MS).is_none());
}

/// How a command or a look of a key ended that was sent this many milliseconds after the start.
#[derive(Clone, Copy, Debug)]
enum Met {
    Busy(u32),
    Silence(u32),
    /// While this process stood still.
    OwnSilence(u32),
    LookAnswered(u32),
    LookSilence(u32),
    LookOwnSilence(u32),
    /// By somebody who has left since.
    LookOfBefore(u32),
}

/// Since when the key was silent after these, in milliseconds.
fn silent_after(met: &[Met]) -> Option<Duration> {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.forget();
    let look = |era, at: u32, says_nothing, result: Result<_, _>| {
        key.note_look(era, start + at * MS, says_nothing, &result);
    };
    for one in met {
        match *one {
            Met::Busy(at) => note(&key, start + at * MS, &busy()),
            Met::Silence(at) => note(&key, start + at * MS, &silence()),
            Met::OwnSilence(at) => key.note(start + at * MS, || true, false, &silence()),
            Met::LookAnswered(at) => look(1, at, false, found(None)),
            Met::LookSilence(at) => look(1, at, false, silence()),
            Met::LookOwnSilence(at) => look(1, at, true, silence()),
            Met::LookOfBefore(at) => look(0, at, false, silence()),
        }
    }
    let since = key.silence().map(|(since, _)| since);
    since.map(|since| since.saturating_duration_since(start))
}

#[test]
fn silence_counts_from_the_first_command_after_the_last_that_was_answered() {
    use Met::{Busy, LookAnswered, LookOfBefore, LookOwnSilence, LookSilence, OwnSilence, Silence};
    for (met, since) in [
        (&[Silence(5), Silence(6)][..], Some(5)),
        (&[Silence(5), Busy(6)], None),
        (&[Busy(5), Silence(6), Silence(7)], Some(6)),
        (&[Busy(5), Silence(5)], Some(5)),
        // It was lost before another was answered.
        (&[Busy(5), Silence(4)], None),
        // An answer that comes late is an answer.
        (&[Busy(5), Silence(6), Busy(4)], None),
        (&[OwnSilence(5)], None),
        (&[LookSilence(5), Silence(6)], Some(5)),
        (&[Busy(5), LookSilence(5)], Some(5)),
        (&[Busy(5), LookSilence(4)], None),
        (&[Busy(5), Silence(6), LookAnswered(4)], None),
        (&[Silence(5), LookAnswered(6)], None),
        (&[LookOwnSilence(5)], None),
        (&[LookOfBefore(5)], None),
    ] {
        let expected = since.map(|since: u32| since * MS);
        assert_eq!(silent_after(met), expected, "{met:?}");
    }
}

#[test]
fn the_key_was_taken_after_a_command_of_then_or_later() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    assert!(!key.was_taken(None) && !key.was_taken(Some(start)));
    note(&key, start, &busy());
    assert!(key.was_taken(None) && key.was_taken(Some(start)));
    assert!(!key.was_taken(Some(start + MS)));
}

#[test]
fn a_failure_lasts_for_five_seconds_to_the_instant() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    note(&key, start, &failed(StoreErrorKind::Denied));
    assert!(key.failing(start, || start + 5000 * MS).is_some());
    let said = key.said(start, start + 5000 * MS);
    assert!(matches!(said, Some(Said::Failing(_))));
}

#[test]
fn a_look_tells_who_holds_the_key() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    key.note_look(0, start, false, &found(None));
    assert!(key.holder().is_none());
    key.note_look(0, start, false, &found(Some("somebody")));
    assert!(matches!(key.holder(), Some(Holder::Foreign(_))));
}

/// The store answers, and nothing is said of the key. Whoever was told that it is taken goes by
/// that.
#[test]
fn a_key_that_others_keep_one_from_is_contended_until_a_command_gets_at_it() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    note(&key, start, &failed(StoreErrorKind::Contended));
    assert!(matches!(known(&key, start), Some(Said::Contended(_))));
    assert!(key.failing(start, || start).is_none() && key.silence().is_none());
    assert_eq!(key.answered(), Some(start));
    note(&key, start + MS, &busy());
    assert!(matches!(known(&key, start + MS), Some(Said::Taken)));
    assert!(known(&key, start + 2 * MS).is_none());
}

#[test]
fn of_two_failures_the_later_one_counts_in_whichever_order_they_are_heard() {
    let (key, start) = (KeyLiveness::default(), Instant::now());
    note(&key, start + MS, &failed(StoreErrorKind::Denied));
    note(&key, start, &failed(StoreErrorKind::OutOfMemory));
    let failing = key.failing(start + MS, || start + MS).unwrap();
    assert_eq!(failing.error.kind(), StoreErrorKind::Denied);
}
