//! [`Burials`]: what is repeated until it is done, and nobody waits for.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use crate::clock::Clock;
use crate::instant::Instant;
use crate::mutex::Mutex;
use crate::owner::Owner;
use crate::timing::backoff;

/// The limit of one attempt.
const LIMIT: Duration = Duration::from_secs(5);
/// At most this many are attempted at once: they share a connection with those who renew.
const AT_ONCE: usize = 8;

/// Ends of what is over: tasks that go on until they have succeeded, since no server does it for
/// them as long as the client lives.
#[derive(Debug)]
pub struct Burials {
    clock: Clock,
    under_way: watch::Sender<usize>,
    attempts: Arc<Semaphore>,
    /// Whose acquires are being undone.
    undoing: Arc<Mutex<HashSet<Owner>>>,
}

impl Burials {
    /// Nothing is being repeated.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            under_way: watch::Sender::new(0),
            attempts: Arc::new(Semaphore::new(AT_ONCE)),
            undoing: Arc::default(),
        }
    }

    /// Attempts it, in a task, until it says that it is done. It gets the time by which it is to
    /// end, after which it is dropped. `done` runs at the end.
    pub fn repeat<F>(
        &self,
        attempt: impl Fn(Instant) -> F + Send + 'static,
        done: impl FnOnce() + Send + 'static,
    ) where
        F: Future<Output = bool> + Send,
    {
        let (clock, under_way) = (self.clock.clone(), self.under_way.clone());
        let attempts = Arc::clone(&self.attempts);
        under_way.send_modify(|burials| *burials += 1);
        self.clock.spawn(async move {
            let mut failures = 0_u32;
            loop {
                let turn = attempts.acquire().await;
                let by = clock.now() + LIMIT;
                let is_done = clock.by(by, attempt(by)).await == Some(true);
                drop(turn);
                if is_done {
                    break;
                }
                failures = failures.saturating_add(1);
                clock.sleep_until(clock.now() + backoff(failures)).await;
            }
            done();
            under_way.send_modify(|burials| *burials -= 1);
        });
    }

    /// [Repeats](Self::repeat) what undoes this owner's acquire: once, however often it is asked
    /// for.
    pub fn undo<F>(&self, owner: Owner, attempt: impl Fn(Instant) -> F + Send + 'static)
    where
        F: Future<Output = bool> + Send,
    {
        let undoing = Arc::clone(&self.undoing);
        if self.undoing.lock().insert(owner) {
            self.repeat(attempt, move || _ = undoing.lock().remove(&owner));
        }
    }

    /// Waits until all are done.
    pub async fn finish(&self, by: Instant) {
        let mut under_way = self.under_way.subscribe();
        let done = under_way.wait_for(|burials| *burials == 0);
        let _ = self.clock.by(by, done).await.is_some();
    }
}
