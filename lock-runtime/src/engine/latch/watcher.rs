//! The task that asks the store about one latch for all who wait for it in this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_store::timing::QUEUE_TTL;
use lock_store::{Clock, LatchRequest, LatchState, LatchVerb, Latched, LockKey, Owner, Store};

use super::room::{Failure, News, Refusal, Room, Rooms};
use crate::engine::background::active::{Active, Entered};
use crate::engine::background::undo::Undo as Reaper;
use crate::engine::liveness::Liveness as Pulse;
use crate::engine::local_queue::LocalQueues as Lines;
use crate::engine::{Engine, timing as time};

/// Lives as long as anybody is in the room, and until its place in the store is given up.
#[derive(Debug)]
pub(super) struct Watcher {
    store: Arc<dyn Store>,
    clock: Clock,
    pulse: Arc<Pulse>,
    command_timeout: Duration,
    lines: Arc<Lines>,
    rooms: Arc<Rooms>,
    room: Arc<Room>,
    key: LockKey,
    /// What the store calls this process's place by.
    place: Owner,
    /// The store may have the place.
    present: bool,
    /// What the latch was when it was last heard of.
    seen: Seen,
    /// A shutdown waits for this.
    _active: Entered<Arc<Active>>,
    /// The client's thread ends when all of these are gone.
    _thread: Reaper,
}

#[derive(Clone, Copy, Debug)]
enum Seen {
    Nothing,
    NotSet,
    Closed(u64),
    Open,
}

impl Watcher {
    pub(super) fn new(engine: &Engine, key: LockKey, room: Arc<Room>) -> Self {
        Self {
            store: Arc::clone(&engine.store),
            clock: engine.clock.clone(),
            pulse: Arc::clone(&engine.liveness),
            command_timeout: engine.defaults.command_timeout,
            lines: Arc::clone(&engine.local_queues),
            rooms: Arc::clone(&engine.latches),
            room,
            key,
            place: engine.next_owner(),
            present: false,
            seen: Seen::Nothing,
            _active: Active::enter(Arc::clone(&engine.active)),
            _thread: engine.undo.clone(),
        }
    }

    pub(super) async fn run(mut self) {
        self.lines.expect_grant(self.place, &self.room.signal);
        let mut look_at = self.clock.now();
        // The last visitor for whom a look was sent.
        let mut asked = 0;
        while let Some(last) = self.rooms.last_visitor(&self.key) {
            let called = self.listen();
            let settled = self.room.board.read(News::settled).0;
            if last <= settled {
                // They are on their way out.
                self.room.signal.notified().await;
            } else if last > asked || called || self.clock.now() >= look_at {
                asked = last;
                look_at = self.look(last).await;
            } else {
                let _ = self.clock.by(look_at, self.room.signal.notified()).await;
            }
        }
        self.lines.forget_grant(self.place);
        self.leave().await;
    }

    /// Takes in what the store has sent. True if only a look can tell what has happened.
    fn listen(&mut self) -> bool {
        let inbox = self.room.signal.take();
        match inbox.granted.map(|granted| granted.token) {
            Some(Some(generation)) => self.has_opened(generation),
            Some(None) => return true,
            None => {}
        }
        inbox.recheck
    }

    /// The store says that this generation has opened.
    fn has_opened(&mut self, generation: u64) {
        // It may be an older one than was seen since.
        if !matches!(self.seen, Seen::Closed(seen) if seen > generation) {
            self.seen = Seen::Open;
            // With the message, the place is gone.
            self.present = false;
            self.tell(|news| news.opened = news.answered);
        }
    }

    /// Asks the store, for visitors up to `last`. When to look again.
    async fn look(&mut self, last: u64) -> Instant {
        let sent = self.clock.now();
        self.present = true;
        let answer = self.ask(LatchVerb::Wait, sent).await;
        // Messages that came before the reply are about what was before it. Whether this one did can't be told here: it
        // counts for those who were in line before, and for the others if the reply is older.
        let inbox = self.room.signal.take();
        let opened = inbox.granted.and_then(|granted| granted.token);
        let mut called = inbox.recheck || (inbox.granted.is_some() && opened.is_none());
        if let Some(generation) = opened {
            self.has_opened(generation);
        }
        self.present = true;
        let failure = match answer {
            Ok(reply) => {
                let remaining = self.learn(reply, last);
                match (opened, self.seen) {
                    (Some(generation), Seen::Closed(_)) => self.has_opened(generation),
                    (Some(_), Seen::NotSet) => called = true,
                    _ => {}
                }
                return if called {
                    self.clock.now()
                } else {
                    time::next_recheck(sent, remaining)
                };
            }
            Err(failure) => failure.error,
        };
        if !failure.kind().is_transient() {
            self.refuse(last, Refusal::Error(failure));
            return time::next_recheck(sent, None);
        }
        let mut failures = 1;
        self.tell(|news| {
            let earlier = news.failing.take();
            failures += earlier.as_ref().map_or(0, |one| one.failures);
            news.failing = Some(Failure {
                asked: last,
                since: earlier.map_or(sent, |one| one.since),
                failures,
                error: failure,
            });
        });
        self.clock.now() + time::backoff(failures)
    }

    /// Takes in a reply to a look for visitors up to `last`. For how long the latch exists still.
    fn learn(&mut self, reply: Latched, last: u64) -> Option<Duration> {
        let before = self.room.board.read(|news| news.answered).0;
        let earlier = self.seen;
        let (mut opened, mut lost, mut remaining) = (0, 0, None);
        match reply {
            Latched::Is(LatchState { count: 0, .. }) => {
                self.seen = Seen::Open;
                self.present = false;
                opened = last;
            }
            Latched::Is(latch) => {
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
            Latched::NotSet => {
                self.seen = Seen::NotSet;
                if matches!(earlier, Seen::Closed(_)) {
                    lost = before;
                }
            }
            // `Set`, `Counted` and `Left` answer other questions.
            _ => {
                self.refuse(last, Refusal::Conflict);
                return None;
            }
        }
        let (changes, _) = self.room.board.read(|news| {
            last > news.answered || opened.max(lost) > news.settled() || news.failing.is_some()
        });
        // Whoever has nothing new to learn is not woken.
        if changes {
            self.tell(|news| {
                news.answered = news.answered.max(last);
                news.opened = news.opened.max(opened);
                news.lost = news.lost.max(lost);
                news.failing = None;
            });
        }
        remaining
    }

    fn refuse(&self, last: u64, refusal: Refusal) {
        self.tell(|news| {
            news.refused = (last, Some(refusal));
            news.failing = None;
        });
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        self.room.board.change(change);
    }

    async fn ask(&self, verb: LatchVerb, sent: Instant) -> Result<Latched, lock_store::Failure> {
        let request = LatchRequest {
            key: self.key.clone(),
            owner: self.place,
            verb,
        };
        let by = sent + self.command_timeout;
        let waits = verb == LatchVerb::Wait;
        if waits {
            self.lines.expect_over(self.place, None);
        }
        let result = self.store.latch(request, by).await;
        self.pulse.note(sent, &result);
        let answer = result?;
        if waits {
            // What is heard over another link may be old.
            self.lines.expect_over(self.place, Some(answer.link));
        }
        Ok(answer.value)
    }

    /// Gives the place up. One that a command makes that arrives later still, over a connection that was replaced,
    /// costs a message that nobody hears, and is forgotten by the store after [`QUEUE_TTL`].
    async fn leave(&self) {
        if !self.present {
            return;
        }
        let until = self.clock.now() + QUEUE_TTL;
        let mut retry = time::Retry::default();
        loop {
            let now = self.clock.now();
            match self.ask(LatchVerb::Leave, now).await {
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
