//! What counts as a sign of life, and when one is asked for.

use tokio::runtime::Handle;

use super::*;
use crate::engine::tests::test_store;

const MS: Duration = Duration::from_millis(1);

fn liveness() -> Arc<Liveness> {
    let clock = Clock::simulated(Handle::current());
    Arc::new(Liveness::new(clock, 500 * MS))
}

fn of_latch() -> Arc<Liveness> {
    Arc::new(Liveness::of_latch(&liveness()))
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
async fn what_a_latch_is_told_is_of_it_alone_and_the_client_hears_all_but_what_was_denied() {
    let client = liveness();
    let [one, other] = [(); 2].map(|()| Liveness::of_latch(&client));
    let now = client.clock.now();
    let kinds = || [&one, &other, &client].map(|one| one.last_failure(now).kind());
    one.note(now, &failed(StoreErrorKind::Disconnected));
    let (gone, none) = (StoreErrorKind::Disconnected, StoreErrorKind::Timeout);
    assert_eq!(kinds(), [gone, none, gone]);
    one.note(now, &failed(StoreErrorKind::Denied));
    assert_eq!(kinds(), [StoreErrorKind::Denied, none, gone]);
    other.note(now, &answered());
    let answered = [&one, &other, &client].map(|one| one.answered().is_some());
    assert_eq!(answered, [false, true, true]);
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

/// Whether a store is asked that answered a command of `sent`, while one failed at `failed_at`, if
/// it must have answered since `since`; all in milliseconds.
async fn is_asked(sent: u32, failed_at: Option<u32>, since: u32) -> bool {
    let store = test_store(Clock::simulated(Handle::current()));
    let liveness = of_latch();
    let start = liveness.clock.now();
    liveness.note(start + sent * MS, &answered());
    if let Some(at) = failed_at {
        tokio::time::advance(at * MS).await;
        liveness.note(start, &failed(StoreErrorKind::Disconnected));
    }
    tokio::time::advance(100 * MS).await;
    let (since, by) = (start + since * MS, liveness.clock.now() + 500 * MS);
    assert!(
        liveness
            .check(&store, &LockKey::from("l"), since, by)
            .await
            .is_ok()
    );
    liveness.answered() != Some(start + sent * MS)
}

#[tokio::test(start_paused = true)]
async fn a_store_is_asked_unless_it_has_answered_since_and_nothing_failed_later() {
    assert!(!is_asked(10, None, 10).await);
    assert!(is_asked(10, None, 11).await);
    assert!(!is_asked(10, Some(9), 10).await);
    assert!(is_asked(10, Some(10), 10).await);
    assert!(is_asked(10, Some(11), 10).await);
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
        assert_eq!(
            liveness.silence().map(|(since, _)| since),
            expected,
            "{met:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_silence_that_nobody_meets_again_says_nothing_after_five_seconds() {
    let liveness = liveness();
    let start = liveness.clock.now();
    liveness.note(start, &failed(StoreErrorKind::Timeout));
    tokio::time::advance(5000 * MS).await;
    assert_eq!(liveness.silence().map(|(since, _)| since), Some(start));
    tokio::time::advance(MS).await;
    assert_eq!(liveness.silence().map(|(since, _)| since), None);
}

/// The next command may begin after the longest pause, and has as long to be answered.
#[tokio::test(start_paused = true)]
async fn a_silence_lasts_until_the_next_command_can_have_met_it() {
    let timeout = Duration::from_secs(6);
    let liveness = Liveness::new(Clock::simulated(Handle::current()), timeout);
    let start = liveness.clock.now();
    liveness.note(start, &failed(StoreErrorKind::Timeout));
    for _ in 0..2 {
        tokio::time::advance(14_000 * MS).await;
        let sent = liveness.clock.now() - timeout;
        liveness.note(sent, &failed(StoreErrorKind::Timeout));
        assert_eq!(liveness.silence().map(|(since, _)| since), Some(start));
    }
    tokio::time::advance(14_001 * MS).await;
    assert_eq!(liveness.silence(), None);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_has_never_answered_is_asked() {
    let (store, liveness) = (test_store(Clock::simulated(Handle::current())), of_latch());
    let now = liveness.clock.now();
    assert!(
        liveness
            .check(&store, &LockKey::from("l"), now, now + 500 * MS)
            .await
            .is_ok()
    );
    assert_eq!(liveness.answered(), Some(now));
}

/// A user of the store who has no right to anything.
#[derive(Debug)]
struct NoRights {
    store: Arc<dyn Store>,
}

macro_rules! no_rights {
    ($($method:ident($($argument:ident: $type:ty),*) -> $Name:ident($reply:ty);)*) => {
        impl Store for NoRights {
            $(fn $method(&self, $(_: $type,)* _: Instant) -> lock_store::StoreFuture<'_, $reply> {
                let error = StoreError::new(StoreErrorKind::Denied, "a test");
                Box::pin(async { Err(Failure::without_effect(error)) })
            })*

            lock_store::delegate! { capabilities link close is_closed }
        }
    };
}

lock_store::operations!(no_rights);

#[tokio::test(start_paused = true)]
async fn a_look_that_is_denied_is_told_at_once() {
    let store = test_store(Clock::simulated(Handle::current()));
    let store: Arc<dyn Store> = Arc::new(NoRights { store });
    let liveness = of_latch();
    let now = liveness.clock.now();
    let error = liveness
        .check(&store, &LockKey::from("l"), now, now + 500 * MS)
        .await;
    assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Denied);
    assert_eq!(liveness.clock.now(), now);
}
