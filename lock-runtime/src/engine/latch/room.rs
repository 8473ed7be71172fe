//! The tasks of this process that wait for one latch, and the news that they share.
//!
//! However many wait, they are one to the store: one place among its waiters, and one look now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lock_store::{LockKey, StoreError};

use super::board::Board;
use crate::engine::errors::unavailable;
use crate::engine::local_queue::Signal;
use crate::error::{LockError, LostReason};

/// The rooms of a client: one for each latch that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    rooms: Mutex<HashMap<LockKey, Occupied>>,
}

#[derive(Debug)]
struct Occupied {
    room: Arc<Room>,
    /// How many came since the room was opened: the number of the last one.
    came: u64,
    inside: usize,
}

/// What a room's visitors and its watcher have in common.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Calls the watcher: the store has sent a message, or somebody came or left.
    pub(super) signal: Arc<Signal>,
    pub(super) board: Board,
}

/// What the watcher knows. Each number says up to which visitor it goes: whoever came later knows nothing yet, since
/// only a look that was sent after it came tells a visitor what the latch is.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The store has answered a look for these.
    pub(super) answered: u64,
    /// For these the latch has opened.
    pub(super) opened: u64,
    /// These, or earlier visitors, saw a latch that was gone before it opened.
    pub(super) lost: u64,
    /// These were refused, with what waiting does not change.
    pub(super) refused: (u64, Option<Refusal>),
    pub(super) failing: Option<Failure>,
}

/// Why no visitor need wait.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Conflict,
    Error(StoreError),
}

/// Looks fail at the moment.
#[derive(Debug)]
pub(super) struct Failure {
    /// One was sent for these.
    pub(super) asked: u64,
    pub(super) since: Instant,
    pub(super) failures: u32,
    pub(super) error: StoreError,
}

impl News {
    /// For how many there is nothing more to find out.
    pub(super) fn settled(&self) -> u64 {
        self.opened.max(self.lost).max(self.refused.0)
    }
}

impl Rooms {
    fn rooms(&self) -> MutexGuard<'_, HashMap<LockKey, Occupied>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the latch's room, and opens it if nobody is inside: then `watch` must see to its watcher.
    pub(super) fn enter(
        self: &Arc<Self>,
        key: &LockKey,
        watch: impl FnOnce(&Arc<Room>),
    ) -> Visitor {
        let mut rooms = self.rooms();
        let opened = !rooms.contains_key(key);
        let occupied = rooms.entry(key.clone()).or_insert_with(|| Occupied {
            room: Arc::default(),
            came: 0,
            inside: 0,
        });
        occupied.came += 1;
        occupied.inside += 1;
        let visitor = Visitor {
            rooms: Arc::clone(self),
            key: key.clone(),
            number: occupied.came,
            edition: 0,
            room: Arc::clone(&occupied.room),
        };
        drop(rooms);
        if opened {
            watch(&visitor.room);
        } else {
            drop(visitor.room.signal.wake_up());
        }
        visitor
    }

    /// For the watcher: the number of the last visitor. `None` if nobody is inside; then the room is closed.
    pub(super) fn last_visitor(&self, key: &LockKey) -> Option<u64> {
        let mut rooms = self.rooms();
        let occupied = rooms.get(key)?;
        if occupied.inside == 0 {
            rooms.remove(key);
            return None;
        }
        Some(occupied.came)
    }

    /// How many wait, for all latches.
    pub(crate) fn waiting(&self) -> usize {
        self.rooms().values().map(|one| one.inside).sum()
    }
}

/// A task that waits. Dropping it leaves the room; the last one ends the watcher.
#[derive(Debug)]
pub(super) struct Visitor {
    rooms: Arc<Rooms>,
    key: LockKey,
    number: u64,
    room: Arc<Room>,
    /// What it has read last.
    edition: u64,
}

/// What a visitor knows.
pub(super) enum Word {
    /// The store has not been asked on its behalf, or has not answered yet.
    Unasked,
    /// The latch is not open; or looks fail, since when and with what.
    Wait(Option<(Instant, StoreError)>),
    Over(Result<(), LockError>),
}

impl Visitor {
    /// What is known now. News that come after this call end the next [`changed`](Self::changed).
    pub(super) fn word(&mut self) -> Word {
        let (word, edition) = self.room.board.read(|news| self.read(news));
        self.edition = edition;
        word
    }

    fn read(&self, news: &News) -> Word {
        let (number, key) = (self.number, || self.key.clone());
        if number <= news.opened {
            return Word::Over(Ok(()));
        }
        if number <= news.lost {
            let reason = LostReason::NotSet;
            return Word::Over(Err(LockError::Lost { key: key(), reason }));
        }
        if number <= news.refused.0 {
            return Word::Over(Err(match &news.refused.1 {
                Some(Refusal::Error(error)) => unavailable(Some(&self.key), error.clone()),
                _ => LockError::KeyConflict { key: key() },
            }));
        }
        let failing = news.failing.as_ref();
        match failing.filter(|failing| number <= failing.asked) {
            Some(failing) => Word::Wait(Some((failing.since, failing.error.clone()))),
            None if number <= news.answered => Word::Wait(None),
            None => Word::Unasked,
        }
    }

    /// Waits for news.
    pub(super) async fn changed(&self) {
        self.room.board.newer(self.edition).await;
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut rooms = self.rooms.rooms();
        let last = rooms.get_mut(&self.key).is_some_and(|occupied| {
            occupied.inside -= 1;
            occupied.inside == 0
        });
        drop(rooms);
        if last {
            drop(self.room.signal.wake_up());
        }
    }
}
