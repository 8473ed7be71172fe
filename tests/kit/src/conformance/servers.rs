//! Running servers, passed from one test to the next.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Backend;
use lock_store::{Capabilities, Wish};
use tokio::runtime::{Builder, Runtime};

use super::Behaviour;
use super::engine::Engine;

/// Far more than any behaviour needs.
const LIMIT: Duration = Duration::from_secs(120);

/// All running servers of one engine.
pub(super) struct Servers {
    engine: Engine,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    /// Empty servers that are not in use.
    ready: Vec<Backend>,
    in_use: usize,
}

impl Servers {
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            engine,
            state: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// Runs a behaviour once, and returns how long it took. After a failure its servers are
    /// discarded, since their state is unknown.
    pub(super) fn run(&self, behaviour: Behaviour) -> Duration {
        let place = self.wait_for_place();
        let ready = self.state().ready.pop();
        let backend = ready.unwrap_or_else(|| runtime().block_on(self.start()));
        let began = Instant::now();
        let test = (behaviour.test)(backend.clone());
        // A runtime of its own, which ends whatever the behaviour has left.
        let done = runtime().block_on(async { tokio::time::timeout(LIMIT, test).await });
        assert!(done.is_ok(), "it did not end within {LIMIT:?}");
        let took = began.elapsed();
        if runtime().block_on(backend.is_emptied()) {
            self.state().ready.push(backend);
        }
        drop(place);
        took
    }

    /// An empty store, which says that it can do what the engine is said to do.
    async fn start(&self) -> Backend {
        let backend = (self.engine.start)().await;
        let (said, is) = ((self.engine.can)(), backend.capabilities());
        let wishes = [
            Wish::Shares,
            Wish::Fair,
            Wish::Fencing,
            Wish::Rate,
            Wish::ExactRate,
            Wish::Latch,
        ];
        let of = |can: &Capabilities| {
            let wishes = wishes.map(|wish| can.refusal(wish).is_none());
            (wishes, can.tells, can.rounds_up)
        };
        assert_eq!(of(&said), of(&is), "{:?}", self.engine);
        backend
    }

    fn wait_for_place(&self) -> Place<'_> {
        let mut state = self.state();
        while state.in_use >= self.engine.at_once {
            let left = self.left.wait(state);
            state = left.unwrap_or_else(PoisonError::into_inner);
        }
        state.in_use += 1;
        Place(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given back also if the test fails.
struct Place<'s>(&'s Servers);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state().in_use -= 1;
        self.0.left.notify_one();
    }
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}
