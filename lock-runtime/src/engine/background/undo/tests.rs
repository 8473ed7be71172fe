//! What is left to do when nobody is there who does it.

use tokio::runtime::Handle;

use super::*;
use crate::engine::tests::test_store;
use crate::observe::Events;

fn undo() -> (Undo, UndoTask) {
    let clock = Clock::simulated(Handle::current());
    let store = test_store(clock.clone());
    let timeout = Duration::from_millis(500);
    let liveness = Arc::new(Liveness::new(clock.clone(), timeout));
    let observed = Arc::new(Observed::new(Events::default()));
    Undo::new(store, clock, liveness, observed, timeout)
}

fn release() -> UndoJob {
    let now = Instant::now();
    UndoJob::Release(PendingRelease {
        requests: Vec::new(),
        keep_until: now,
        expires: now,
        first: Vec::new(),
        pending_outcomes: Vec::new(),
        expected_gone: true,
    })
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_end_of_the_client_s_runtime_is_not_waited_for() {
    let (undo, task) = undo();
    undo.send(release());
    assert_eq!(undo.pending(), 1);
    drop(task);
    undo.send(release());
    assert_eq!(undo.pending(), 1);
    undo.until_drained().await;
    assert_eq!(undo.pending(), 1);
}
