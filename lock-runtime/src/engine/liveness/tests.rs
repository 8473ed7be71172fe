//! What counts as a sign of life.

use tokio::runtime::Handle;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn liveness() -> Liveness {
    let clock = Clock::simulated(Handle::current());
    Liveness::new(clock, 500 * MS)
}

fn failed(kind: StoreErrorKind) -> Replied<()> {
    Err(Failure::without_effect(StoreError::new(kind, "a test")))
}

fn answered() -> Replied<()> {
    Ok(lock_store::Answer::new((), lock_store::Link(0)))
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_a_sign_of_life_but_silence_and_the_lack_of_a_right_are_none() {
    use StoreErrorKind::{Denied, Disconnected, OutOfMemory, Timeout};
    for (kind, alive) in [
        (OutOfMemory, true),
        (Denied, false),
        (Disconnected, false),
        (Timeout, false),
    ] {
        let liveness = liveness();
        let now = liveness.clock.now();
        liveness.note(now, &failed(kind));
        assert_eq!(liveness.answered(), alive.then_some(now), "{kind:?}");
        let failure = liveness.last_failure(now).kind();
        let is_silence = matches!(kind, Disconnected | Timeout);
        assert_eq!(failure, if is_silence { kind } else { Timeout }, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_failed_since_then_is_the_last_failure() {
    let liveness = liveness();
    let now = liveness.clock.now();
    liveness.note(now, &failed(StoreErrorKind::Disconnected));
    let last = |since| liveness.last_failure(since).kind();
    assert_eq!(last(now), StoreErrorKind::Disconnected);
    assert_eq!(last(now - MS), StoreErrorKind::Disconnected);
    assert_eq!(last(now + MS), StoreErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn silence_counts_from_the_first_command_after_the_last_that_was_answered() {
    // Whether each was answered, and when it was sent.
    for (met, since) in [
        (&[(false, 5), (false, 6)][..], Some(5)),
        (&[(false, 5), (true, 6)], None),
        (&[(true, 5), (false, 5)], Some(5)),
        // It was lost before another was answered.
        (&[(true, 5), (false, 4)], None),
        // An answer that comes late is an answer.
        (&[(true, 5), (false, 6), (true, 4)], None),
    ] {
        let liveness = liveness();
        let start = liveness.clock.now();
        for (is_answered, at) in met {
            let result = match is_answered {
                true => answered(),
                false => failed(StoreErrorKind::Timeout),
            };
            liveness.note(start + *at * MS, &result);
        }
        let expected = since.map(|since: u32| start + since * MS);
        assert_eq!(liveness.silent_since(), expected, "{met:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silence_that_nobody_meets_again_says_nothing_after_five_seconds() {
    let liveness = liveness();
    let start = liveness.clock.now();
    liveness.note(start, &failed(StoreErrorKind::Timeout));
    tokio::time::advance(5000 * MS).await;
    assert_eq!(liveness.silent_since(), Some(start));
    tokio::time::advance(MS).await;
    assert_eq!(liveness.silent_since(), None);
}
