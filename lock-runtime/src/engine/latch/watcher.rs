//! The task that asks the store about one latch for all its waiters of this process.

use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::QUEUE_TTL;
use lock_store::{
    Answer, Clock, Failure, Instant, LatchCall, LatchFound, LatchState, LockKey, Owner, Store,
};

use super::view::{FailedLook, LatchView, Refusal};
use super::watch::{LatchWatch, LatchWatches};
use crate::engine::Engine;
use crate::engine::background::active::{Active, Entered};
use crate::engine::background::cleanup::Cleanup;
use crate::engine::grants::Grants;
use crate::engine::liveness::{Failing, Liveness};
use crate::engine::timing::{self, Retry};

/// Lives as long as a task waits, and until its place in the store is given up.
#[derive(Debug)]
pub(super) struct LatchWatcher {
    store: Arc<dyn Store>,
    clock: Clock,
    liveness: Arc<Liveness>,
    command_timeout: Duration,
    grants: Arc<Grants>,
    watches: Arc<LatchWatches>,
    watch: Arc<LatchWatch>,
    key: LockKey,
    /// What the store calls this process's place by.
    place: Owner,
    may_be_stored: bool,
    /// What the latch was when it was last looked at.
    seen: Seen,
    /// The generation that has opened, as a message says. Anybody may have sent it, so it only
    /// means: look now. If the latch is gone by then, it says that the latch had opened.
    told: Option<u64>,
    /// The next look asks for no place: most likely the latch is open, and then nobody would give
    /// it up if its command were carried out again.
    hinted: bool,
    /// A shutdown waits for this.
    _active: Entered<Arc<Active>>,
    /// The client's thread ends when all of these are gone.
    _thread: Cleanup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    NotSet,
    Closed(u64),
    Open,
}

impl LatchWatcher {
    pub(super) fn new(engine: &Engine, key: LockKey, watch: Arc<LatchWatch>) -> Self {
        Self {
            store: Arc::clone(&engine.store),
            clock: engine.clock.clone(),
            liveness: Arc::clone(&watch.liveness),
            command_timeout: engine.defaults.command_timeout,
            grants: Arc::clone(&engine.grants),
            watches: Arc::clone(&engine.latches),
            watch,
            key,
            place: engine.next_owner(),
            may_be_stored: false,
            seen: Seen::Nothing,
            told: None,
            hinted: false,
            _active: Active::enter(Arc::clone(&engine.active)),
            _thread: engine.cleanup.clone(),
        }
    }

    pub(super) async fn run(mut self) {
        self.grants.register(self.place, &self.watch.signal);
        let mut look_at = self.clock.now();
        // The last waiter that a look was sent for.
        let mut asked = 0;
        while let Some(last) = self.watches.last_waiter(&self.key) {
            let called = self.listen();
            let settled = self.watch.view.read(LatchView::settled).0;
            if last <= settled {
                // They are on their way out.
                self.watch.signal.notified().await;
            } else if last > asked || called || self.clock.now() >= look_at {
                asked = last;
                look_at = self.look(last).await;
            } else {
                let _ = self.clock.by(look_at, self.watch.signal.notified()).await;
            }
        }
        self.grants.forget(self.place);
        self.leave().await;
    }

    /// Takes in what the store has sent. Whether only a look can tell what has happened.
    fn listen(&mut self) -> bool {
        let inbox = self.watch.signal.take();
        let granted = inbox.granted;
        self.told = granted.and_then(|granted| granted.token).or(self.told);
        self.hinted |= granted.is_some();
        inbox.recheck || granted.is_some()
    }

    /// Asks the store, for waiters up to `last`. When to recheck.
    async fn look(&mut self, last: u64) -> Instant {
        let sent = self.clock.now();
        let answer = match std::mem::take(&mut self.hinted) {
            true => self.only_look(sent).await,
            false => {
                self.may_be_stored = true;
                self.ask(sent).await
            }
        };
        // A message may be newer than the reply, which can't be told here.
        let called = self.listen();
        let failure = match answer {
            Ok(reply) => {
                let remaining = self.learn(reply, last);
                return match called {
                    true if self.seen != Seen::Open => self.clock.now(),
                    _ => timing::next_recheck(sent, remaining),
                };
            }
            Err(failure) => failure.error,
        };
        if !failure.kind().is_transient() {
            self.refuse(last, Refusal::Error(failure));
            return timing::next_recheck(sent, None);
        }
        let mut failures = 1;
        self.update_view(|view| {
            let earlier = view.failed.take();
            failures += earlier.as_ref().map_or(0, |one| one.failures);
            view.failed = Some(FailedLook {
                asked: last,
                failures,
                failing: Failing {
                    since: earlier.map_or(sent, |one| one.failing.since),
                    error: failure,
                },
            });
        });
        self.clock.now() + timing::backoff(failures)
    }

    /// Takes in a reply to a look for waiters up to `last`. For how long the latch exists still.
    fn learn(&mut self, reply: LatchFound, last: u64) -> Option<Duration> {
        let before = self.watch.view.read(|view| view.answered).0;
        let earlier = self.seen;
        let (mut opened, mut lost, mut remaining) = (0, 0, None);
        match reply {
            LatchFound::Is(LatchState { count: 0, .. }) => {
                self.seen = Seen::Open;
                self.may_be_stored = false;
                opened = last;
            }
            LatchFound::Is(latch) => {
                self.seen = Seen::Closed(latch.generation);
                remaining = latch.remaining;
                match earlier {
                    // It has opened and was set again between two looks.
                    Seen::NotSet if latch.opened > 0 => opened = before,
                    Seen::Closed(generation) if latch.opened >= generation => opened = before,
                    Seen::Closed(generation) if latch.generation != generation => lost = before,
                    _ => {}
                }
            }
            LatchFound::NotSet => {
                self.seen = Seen::NotSet;
                match earlier {
                    Seen::Closed(generation) if self.told == Some(generation) => opened = before,
                    Seen::Closed(_) => lost = before,
                    _ => {}
                }
            }
            LatchFound::Conflict => {
                self.refuse(last, Refusal::Conflict);
                return None;
            }
        }
        let (changes, _) = self.watch.view.read(|view| {
            last > view.answered || opened.max(lost) > view.settled() || view.failed.is_some()
        });
        // A waiter that has nothing new to learn is not woken.
        if changes {
            self.update_view(|view| {
                view.answered = view.answered.max(last);
                view.opened = view.opened.max(opened);
                view.lost = view.lost.max(lost);
                view.failed = None;
            });
        }
        remaining
    }

    fn refuse(&self, last: u64, refusal: Refusal) {
        self.update_view(|view| {
            view.refused = (last, Some(refusal));
            view.failed = None;
        });
    }

    fn update_view(&self, change: impl FnOnce(&mut LatchView)) {
        self.watch.view.change(change);
    }

    fn call(&self) -> LatchCall {
        LatchCall::new(self.key.clone(), self.place, None)
    }

    /// Asks what the latch is.
    async fn only_look(&self, sent: Instant) -> Result<LatchFound, Failure> {
        let by = sent + self.command_timeout;
        let result = self.store.latch_look(self.key.clone(), by).await;
        self.liveness.note(sent, &result);
        Ok(result?.value)
    }

    /// Asks what the latch is, and for the place.
    async fn ask(&self, sent: Instant) -> Result<LatchFound, Failure> {
        self.grants.expect_over(self.place, None);
        let by = sent + self.command_timeout;
        let result = self.store.latch_wait(self.call(), by).await;
        self.liveness.note(sent, &result);
        let Answer { value, link, .. } = result?;
        // What is heard over another link may be old.
        self.grants.expect_over(self.place, Some(link));
        Ok(value)
    }

    /// Gives the place up. One that a command makes that arrives later still, over a connection
    /// that was replaced, costs a message that nobody hears, and is forgotten by the store after
    /// [`QUEUE_TTL`].
    async fn leave(&self) {
        if !self.may_be_stored {
            return;
        }
        let until = self.clock.now() + QUEUE_TTL;
        let mut retry = Retry::default();
        loop {
            let now = self.clock.now();
            let by = now + self.command_timeout;
            let result = self.store.latch_leave(self.call(), by).await;
            self.liveness.note(now, &result);
            match result {
                Err(failure) if failure.error.kind().is_transient() => {}
                _ => return,
            }
            if now >= until || self.store.is_closed() {
                return;
            }
            let again = retry.again_at(self.clock.now());
            self.clock.sleep_until(again).await;
        }
    }
}
