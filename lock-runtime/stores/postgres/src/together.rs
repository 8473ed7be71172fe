//! [`Together`]: requests of one kind for one key that wait for each other.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use lock_store::{Instant, Mutex, Replied};
use tokio::sync::oneshot;

/// At most this many go as one statement: a commit of more takes too long.
const AT_ONCE: usize = 64;

/// The requests that wait for one key.
struct Line<R, T> {
    waiting: VecDeque<JoinedRequest<R, T>>,
    /// When the server last answered a statement about the key.
    answered: Option<Instant>,
}

/// The requests of one kind that wait, by their key's name. A name that is there has a statement
/// under way.
pub(crate) struct Together<R, T> {
    keys: Mutex<HashMap<Vec<u8>, Line<R, T>>>,
    numbers: AtomicU64,
}

pub(crate) struct JoinedRequest<R, T> {
    number: u64,
    pub(crate) request: R,
    pub(crate) by: Instant,
    pub(crate) reply: oneshot::Sender<Replied<T>>,
}

/// A request that waits. Dropped before it was sent, it is not sent.
pub(crate) struct Seat<'s, R, T> {
    together: &'s Together<R, T>,
    name: &'s [u8],
    number: u64,
    joined: Instant,
    pub(crate) replied: oneshot::Receiver<Replied<T>>,
    /// Nobody has a statement under way: this one begins it.
    pub(crate) begins: bool,
}

/// What became of a request whose time is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LeftSeat {
    /// A statement has it.
    WasSent,
    /// It was not sent. When the server last answered others about the key, if it did meanwhile.
    Unsent(Option<Instant>),
}

impl<R, T> Default for Line<R, T> {
    fn default() -> Self {
        let waiting = VecDeque::new();
        let answered = None;
        Self { waiting, answered }
    }
}

impl<R, T> Default for Together<R, T> {
    fn default() -> Self {
        Self {
            keys: Mutex::default(),
            numbers: AtomicU64::default(),
        }
    }
}

impl<R, T> Together<R, T> {
    pub(crate) fn join<'s>(
        &'s self,
        name: &'s [u8],
        request: R,
        (now, by): (Instant, Instant),
    ) -> Seat<'s, R, T> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (reply, replied) = oneshot::channel();
        let mut keys = self.keys.lock();
        let begins = !keys.contains_key(name);
        keys.entry(name.to_vec())
            .or_default()
            .waiting
            .push_back(JoinedRequest {
                number,
                request,
                by,
                reply,
            });
        Seat {
            together: self,
            name,
            number,
            joined: now,
            replied,
            begins,
        }
    }

    /// The next to go. Without any, nothing is under way any more.
    pub(crate) fn next(&self, name: &[u8]) -> Vec<JoinedRequest<R, T>> {
        let mut keys = self.keys.lock();
        let Some(Line { waiting, .. }) = keys.get_mut(name) else {
            return Vec::new();
        };
        let many = waiting.len().min(AT_ONCE);
        let next: Vec<_> = waiting.drain(..many).collect();
        if next.is_empty() {
            keys.remove(name);
        }
        next
    }

    /// The server has answered a statement about these keys.
    pub(crate) fn note_answer(&self, names: &[Vec<u8>], now: Instant) {
        let mut keys = self.keys.lock();
        if keys.is_empty() {
            return;
        }
        for name in names {
            if let Some(line) = keys.get_mut(name) {
                line.answered = Some(now);
            }
        }
    }
}

impl<R, T> Seat<'_, R, T> {
    pub(crate) fn leave(&self) -> LeftSeat {
        let mut keys = self.together.keys.lock();
        let Some(Line { waiting, answered }) = keys.get_mut(self.name) else {
            return LeftSeat::WasSent;
        };
        let at = waiting.iter().position(|one| one.number == self.number);
        match at.and_then(|at| waiting.remove(at)) {
            Some(_) => LeftSeat::Unsent(answered.filter(|at| *at >= self.joined)),
            None => LeftSeat::WasSent,
        }
    }
}

impl<R, T> Drop for Seat<'_, R, T> {
    fn drop(&mut self) {
        self.leave();
    }
}
