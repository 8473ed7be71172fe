//! What is left to do when nobody is there who does it.

use lock_store::memory::MemoryStore;
use lock_store::{ClientId, HandedOver, Listener, Namespace, StoreContext, WakeUp};
use tokio::runtime::Handle;

use super::*;
use crate::observe::Events;

#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn granted(&self, _: HandedOver) -> WakeUp {
        WakeUp::default()
    }
    fn recheck(&self) {}
}

fn undo() -> (Undo, UndoTask) {
    let listener: Arc<dyn Listener> = Arc::new(Deaf);
    let clock = Clock::simulated(Handle::current());
    let Ok(namespace) = Namespace::new("test") else {
        unreachable!("a good namespace");
    };
    let context = StoreContext::new(namespace, ClientId(1), &listener, clock.clone());
    let store = MemoryStore::new().connect(context);
    let timeout = Duration::from_millis(500);
    let liveness = Arc::new(Liveness::new(clock.clone(), timeout));
    let observed = Arc::new(Observed::new(Events::default()));
    Undo::new(store, clock, liveness, observed, timeout)
}

fn release() -> Job {
    let now = Instant::now();
    Job::Release(PendingRelease {
        requests: Vec::new(),
        keep_until: now,
        expires: now,
        first: Vec::new(),
        late: Vec::new(),
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
    undo.drained().await;
    assert_eq!(undo.pending(), 1);
}
