//! What two tests of engines with several servers expect of a client that is cut off.

use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient};

/// More than a slow machine needs.
const LONG: Duration = Duration::from_secs(60);

/// Cuts a holder off, waits until another client has its lock, and makes sure that the holder knew
/// before that it is lost. Both guards, the old one first.
///
/// # Panics
/// If it did not, or nobody gets the lock.
pub async fn lost_before_another_has_it(
    guard: Guard,
    cut_off: impl FnOnce(),
    other: &LockClient,
) -> (Guard, Guard) {
    let key = guard.key().clone();
    cut_off();
    let lost = tokio::spawn(async move {
        guard.lost().await;
        let at = Instant::now();
        assert!(!guard.is_held());
        (at, guard)
    });
    let next = other.lock(key).wait(LONG).acquire().await;
    let next = next.expect("the others have a majority");
    let granted = Instant::now();
    assert!(
        lost.is_finished(),
        "its holder does not know that it is lost"
    );
    let (at, guard) = lost.await.expect("it has ended");
    assert!(at < granted);
    assert!(next.is_held());
    (guard, next)
}
