//! What is left to do when nobody is there who does it.

use tokio::runtime::Handle;

use super::*;
use crate::engine::tests::test_store;
use crate::observe::Events;

fn cleanup() -> (Cleanup, CleanupTask) {
    let clock = Clock::simulated(Handle::current());
    let store = test_store(clock.clone());
    let timeout = Duration::from_millis(500);
    let liveness = Arc::new(Liveness::new(clock.clone(), timeout));
    let observed = Arc::new(Observed::new(Events::default()));
    Cleanup::new(store, clock, liveness, observed, timeout)
}

fn release() -> CleanupJob {
    let now = Instant::now();
    CleanupJob::Release(PendingRelease {
        requests: Vec::new(),
        keep_until: now,
        expires: now,
        holds_back: Vec::new(),
        pending_outcomes: Vec::new(),
        gone: GoneHold::IsExpected,
    })
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_end_of_the_client_s_runtime_is_not_waited_for() {
    let (cleanup, task) = cleanup();
    cleanup.send(release());
    assert_eq!(cleanup.pending(), 1);
    drop(task);
    cleanup.send(release());
    assert_eq!(cleanup.pending(), 1);
    cleanup.until_drained().await;
    assert_eq!(cleanup.pending(), 1);
}
