//! A test for each row of the tables.

use std::time::Duration;

use super::*;
use crate::config::{Defaults, Wait};

const MS: Duration = Duration::from_millis(1);
const WAIT: Wait = Wait::For(Duration::from_secs(3));
/// The store may be silent for two seconds. It may fail for ten under a wait without end.
const DEFAULTS: Defaults = Defaults {
    unavailable_after: Some(Duration::from_secs(2)),
    ..Defaults::STANDARD
};

const ALIVE: Said = Said::Alive {
    refused_before: None,
};

fn error(text: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Timeout, text)
}

fn failing(since: Instant) -> Option<Failing> {
    let error = error("a failure");
    Some(Failing { since, error })
}

fn facts(budget: &Budget) -> Facts<'_> {
    Facts {
        budget,
        answered: None,
        silent_since: None,
        failing: None,
        failed_before: false,
        unusable: None,
    }
}

/// Why a request that began then ends at some times after that, in milliseconds.
fn overdue<const N: usize>(
    wait: Wait,
    known: impl FnOnce(&mut Facts<'_>, Instant),
    times: [u32; N],
) -> [Option<String>; N] {
    let start = Instant::now();
    let budget = Budget::new(start, wait, &DEFAULTS);
    let mut facts = facts(&budget);
    known(&mut facts, start);
    let at = |ms: u32| facts.overdue(start + ms * MS, || error("what others met"));
    times.map(|ms| at(ms).map(|error| error.to_string()))
}

fn is_for(ended: Option<&String>, text: &str) -> bool {
    ended.is_some_and(|ended| ended.contains(text))
}

/// The verdict on a request `after` it began.
fn judged(wait: Wait, after: Duration, said: Said, was_told_busy: bool) -> Verdict {
    let start = Instant::now();
    let budget = Budget::new(start, wait, &DEFAULTS);
    judge(&budget, start + after, said, was_told_busy)
}

fn over(said: Said, was_told_busy: bool) -> Verdict {
    judged(WAIT, 3000 * MS, said, was_told_busy)
}

fn is_unavailable(verdict: &Verdict, text: &str) -> bool {
    matches!(verdict, Verdict::Unavailable(error) if error.to_string().contains(text))
}

#[test]
fn silence_ends_any_wait() {
    for wait in [WAIT, Wait::Forever] {
        let silent = |facts: &mut Facts<'_>, start| facts.silent_since = Some(start);
        let [before, ends] = overdue(wait, silent, [1999, 2000]);
        assert!(before.is_none() && is_for(ends.as_ref(), "what others met"));
        let failed = |facts: &mut Facts<'_>, start| {
            (facts.silent_since, facts.failing) = (Some(start), failing(start));
        };
        let [ends] = overdue(wait, failed, [2000]);
        assert!(is_for(ends.as_ref(), "a failure"), "{wait:?}");
    }
}

#[test]
fn one_that_comes_into_a_silence_has_the_time_of_a_command() {
    let silent = |facts: &mut Facts<'_>, start| facts.silent_since = Some(start - 5000 * MS);
    let [before, ends] = overdue(WAIT, silent, [499, 500]);
    assert!(before.is_none() && ends.is_some());
}

#[test]
fn grants_that_come_too_late_end_a_wait_without_end() {
    let too_late = error("a longer lease");
    for (wait, ends) in [(WAIT, false), (Wait::Forever, true)] {
        let budget = Budget::new(Instant::now(), wait, &DEFAULTS);
        let mut facts = facts(&budget);
        facts.unusable = Some(&too_late);
        let ended = facts.overdue(budget.started, || error("what others met"));
        let ended = ended.map(|error| error.to_string());
        assert_eq!(is_for(ended.as_ref(), "a longer lease"), ends, "{wait:?}");
    }
}

#[test]
fn failures_end_a_wait_without_end_after_the_clients_default_wait() {
    let failed = |facts: &mut Facts<'_>, start| facts.failing = failing(start);
    let [before, ends] = overdue(Wait::Forever, failed, [9999, 10_000]);
    assert!(before.is_none() && is_for(ends.as_ref(), "a failure"));
}

#[test]
fn nothing_else_ends_a_wait_before_its_time() {
    let failed = |facts: &mut Facts<'_>, start| facts.failing = failing(start);
    assert_eq!(overdue(WAIT, failed, [0, 10_000]), [None, None]);
    let answered = |facts: &mut Facts<'_>, start| facts.answered = Some(start);
    assert_eq!(overdue(Wait::Forever, answered, [0, 10_000]), [None, None]);
}

#[test]
fn with_time_left_every_request_waits() {
    for said in [Said::Taken, ALIVE, Said::Failing(error("a failure"))] {
        let verdict = judged(WAIT, 2999 * MS, said, false);
        assert!(matches!(verdict, Verdict::Waits), "{verdict:?}");
    }
}

#[test]
fn a_store_that_fails_at_the_end_is_unavailable() {
    for (wait, told) in [(WAIT, true), (WAIT, false), (Wait::Forever, true)] {
        let said = Said::Failing(error("a failure"));
        let verdict = judged(wait, 3000 * MS, said, told);
        assert!(is_unavailable(&verdict, "a failure"), "{verdict:?}");
    }
}

#[test]
fn a_wait_without_end_goes_on_while_the_store_says_anything() {
    for said in [Said::Taken, ALIVE, Said::Contended(error("others"))] {
        let verdict = judged(Wait::Forever, 60_000 * MS, said, false);
        assert!(matches!(verdict, Verdict::Waits), "{verdict:?}");
    }
}

#[test]
fn a_key_that_is_taken_at_the_end_is_busy() {
    for told in [false, true] {
        assert!(matches!(over(Said::Taken, told), Verdict::Busy));
    }
}

#[test]
fn a_store_that_answers_bears_out_what_was_told_before() {
    assert!(matches!(over(ALIVE, true), Verdict::Busy));
}

#[test]
fn one_that_has_not_asked_when_its_wait_is_over_has_its_first_try() {
    let start = Instant::now();
    let has_it = |wait, after: u32, said, has_asked, was_told_busy: bool| {
        let budget = Budget::new(start, wait, &DEFAULTS);
        has_first_try(&budget, start + after * MS, &said, has_asked, || {
            was_told_busy
        })
    };
    assert!(has_it(WAIT, 3000, ALIVE, false, false));
    assert!(!has_it(WAIT, 2999, ALIVE, false, false));
    assert!(!has_it(Wait::Forever, 3000, ALIVE, false, false));
    for said in [
        Said::Taken,
        Said::Contended(error("others")),
        Said::Failing(error("a failure")),
    ] {
        assert!(!has_it(WAIT, 3000, said, false, false));
    }
    assert!(!has_it(WAIT, 3000, ALIVE, true, false));
    assert!(!has_it(WAIT, 3000, ALIVE, false, true));
}

#[test]
fn a_store_that_answers_only_others_is_unavailable() {
    let verdict = over(ALIVE, false);
    assert!(is_unavailable(&verdict, "it answers others"), "{verdict:?}");
}

#[test]
fn a_key_that_others_keep_one_from_is_busy_if_it_was_said_to_be() {
    let contended = || Said::Contended(error("others"));
    assert!(matches!(over(contended(), true), Verdict::Busy));
}

#[test]
fn a_key_that_others_keep_one_from_is_unavailable_if_nothing_was_said() {
    let verdict = over(Said::Contended(error("others")), false);
    assert!(is_unavailable(&verdict, "others"), "{verdict:?}");
}

#[test]
fn a_request_without_end_is_judged_when_it_would_give_up_and_another_at_its_last_recheck() {
    let start = Instant::now();
    let limited = Budget::new(start, WAIT, &DEFAULTS);
    assert_eq!(facts(&limited).evidence_from(), start + 2500 * MS);
    let endless = Budget::new(start, Wait::Forever, &DEFAULTS);
    let mut facts = facts(&endless);
    assert_eq!(facts.evidence_from(), start + 10_000 * MS);
    facts.answered = Some(start + 1000 * MS);
    assert_eq!(facts.evidence_from(), start + 11_000 * MS);
    facts.failing = failing(start + 500 * MS);
    assert_eq!(facts.evidence_from(), start + 10_500 * MS);
    facts.silent_since = Some(start + 500 * MS);
    assert_eq!(facts.evidence_from(), start + 2500 * MS);
}

#[test]
fn one_wakes_for_whatever_comes_first() {
    let start = Instant::now();
    let budget = Budget::new(start, WAIT, &DEFAULTS);
    let mut facts = facts(&budget);
    let wakes = |facts: &Facts<'_>, now: u32, asks_at: Option<u32>| {
        let wake = facts.wake_at(start + now * MS, asks_at.map(|at| start + at * MS));
        wake.saturating_duration_since(start)
    };
    assert_eq!(wakes(&facts, 0, None), 2500 * MS);
    assert_eq!(wakes(&facts, 2500, None), 3000 * MS);
    assert_eq!(wakes(&facts, 0, Some(1000)), 1000 * MS);
    facts.silent_since = Some(start);
    assert_eq!(wakes(&facts, 0, None), 2000 * MS);
}
