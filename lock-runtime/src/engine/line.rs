//! Requests of this process, in arrival order for each key.
//!
//! Only the first of a key's line talks to the store (with `fair` all do, and only the first looks again), so a
//! thousand waiting tasks cost the store no more than one. A release in the background goes before later requests.
//! A request that does not take what is passed on to it, because nobody polls it, is passed over until somebody does.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::turn::Baton;
use crate::key::LockKey;
use crate::store::{Ended, Link, Listener, Owner, WakeUp};

/// All lines of a client, and the way from an owner token to the request that waits under it.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    state: Mutex<State>,
    /// Something was passed on, and nobody looks whether it is taken.
    patrol: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: HashMap<LockKey, Line>,
    /// Requests that stand, or may stand, in the store's queue.
    queued: BTreeMap<u64, Expecting>,
    tickets: u64,
    /// Whether somebody looks whether what is passed on is taken.
    patrolled: bool,
    /// Whether something was passed on since the last look.
    passing: bool,
}

#[derive(Debug)]
struct Expecting {
    signal: Arc<Signal>,
    /// The link over which it is told, if that is known: what is heard over another one may be old.
    over: Option<Link>,
}

#[derive(Debug, Default)]
struct Line {
    places: BTreeMap<u64, Waiting>,
    /// Releases under way in the background.
    releasing: usize,
    /// Holds of this process which may be passed on.
    turns: usize,
    /// To whom the last one was passed on, and when.
    passed: Option<(u64, Instant)>,
    settled: Arc<Notify>,
}

#[derive(Debug)]
struct Waiting {
    signal: Arc<Signal>,
    /// Whether it takes what is passed on inside the process: it has not asked the store yet.
    willing: bool,
    /// It did not take what was passed on to it, and has not been polled since.
    asleep: bool,
}

impl Line {
    /// The first request that is not asleep.
    fn first(&self) -> Option<(u64, &Waiting)> {
        let mut awake = self.places.iter().filter(|(_, one)| !one.asleep);
        awake.next().map(|(ticket, one)| (*ticket, one))
    }
}

/// What reaches a waiting request.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    notify: Arc<Notify>,
    inbox: Mutex<Inbox>,
}

/// What has arrived since the last look.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Another task of this process passed its hold on.
    pub(crate) baton: Option<Baton>,
    /// The store handed the lock over, as was told over this link, with this token.
    pub(crate) granted: Option<(Link, Option<u64>)>,
    /// Messages may have been lost.
    pub(crate) look_again: bool,
}

impl Signal {
    /// Waits for anything. Wakes that came since the last call are not missed.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }

    pub(crate) fn take(&self) -> Inbox {
        std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take_baton(&self) -> Option<Baton> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.baton.take()
    }

    fn put(&self, change: impl FnOnce(&mut Inbox)) -> WakeUp {
        change(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake_up()
    }

    /// Wakes who waits for this, without a word.
    pub(super) fn wake_up(&self) -> WakeUp {
        WakeUp(Some(Arc::clone(&self.notify)))
    }
}

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place at the end of the key's line. A hold is passed on only to a request that is willing.
    pub(crate) fn join(self: &Arc<Self>, key: &LockKey, willing: bool) -> Place {
        let signal = Arc::<Signal>::default();
        let mut state = self.state();
        state.tickets += 1;
        let ticket = state.tickets;
        state.lines.entry(key.clone()).or_default().places.insert(
            ticket,
            Waiting {
                signal: Arc::clone(&signal),
                willing,
                asleep: false,
            },
        );
        Place {
            lines: Arc::clone(self),
            key: key.clone(),
            ticket,
            signal,
        }
    }

    /// Until this is dropped, a release of the key is under way.
    pub(crate) fn releasing(self: &Arc<Self>, key: &LockKey) -> Releasing {
        self.state().lines.entry(key.clone()).or_default().releasing += 1;
        Releasing {
            lines: Arc::clone(self),
            key: key.clone(),
        }
    }

    /// Ends when the release of this key is no longer under way; `None` if none is.
    pub(crate) fn settled(&self, key: &LockKey) -> Option<OwnedNotified> {
        let state = self.state();
        let line = state.lines.get(key)?;
        (line.releasing > 0).then(|| Arc::clone(&line.settled).notified_owned())
    }

    /// Whether nobody in this process waits for the key or releases it.
    pub(crate) fn is_idle(&self, key: &LockKey) -> bool {
        let state = self.state();
        let line = state.lines.get(key);
        line.is_none_or(|line| line.places.is_empty() && line.releasing == 0)
    }

    /// As long as the mark is there, the process has a hold of the key that may be passed on.
    pub(crate) fn mark(self: &Arc<Self>, key: &LockKey) -> Mark {
        self.state().lines.entry(key.clone()).or_default().turns += 1;
        Mark {
            lines: Arc::clone(self),
            key: key.clone(),
        }
    }

    /// Passes a hold on to the first request of its key, unless that stands in the store's queue, or there is none.
    pub(crate) fn pass(&self, baton: Baton, now: Instant) -> Result<WakeUp, Baton> {
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(line) = state.lines.get_mut(baton.key()) else {
            return Err(baton);
        };
        let first = line.places.iter_mut().find(|(_, one)| !one.asleep);
        let Some((ticket, first)) = first.filter(|(_, first)| first.willing) else {
            return Err(baton);
        };
        first.willing = false;
        line.passed = Some((*ticket, now));
        let wake_up = first.signal.put(|inbox| inbox.baton = Some(baton));
        state.passing = true;
        if !std::mem::replace(&mut state.patrolled, true) {
            self.patrol.notify_one();
        }
        Ok(wake_up)
    }

    /// Ends when something is passed on and [`not_taken`](Self::not_taken) should be asked from now on; or at a stop.
    pub(crate) async fn passing(&self) {
        self.patrol.notified().await;
    }

    /// Ends [`passing`](Self::passing).
    pub(crate) fn stop(&self) {
        self.patrol.notify_one();
    }

    /// Takes back what was passed on before `since` and is not taken. `None` if there is nothing to look for any more.
    pub(crate) fn not_taken(&self, since: Instant) -> Option<Vec<Baton>> {
        let mut guard = self.state();
        let state = &mut *guard;
        let mut going_on = std::mem::take(&mut state.passing);
        let mut taken_back = Vec::new();
        for line in state.lines.values_mut() {
            let Some((ticket, at)) = line.passed else {
                continue;
            };
            let place = line.places.get_mut(&ticket);
            match place {
                Some(place) if at <= since => {
                    if let Some(baton) = place.signal.take_baton() {
                        place.asleep = true;
                        taken_back.push(baton);
                    }
                    line.passed = None;
                }
                Some(_) => going_on = true,
                None => line.passed = None,
            }
        }
        state.patrolled = going_on || !taken_back.is_empty();
        state.patrolled.then_some(taken_back)
    }

    /// From now on, a grant to this owner is told to the signal, over whichever link it comes.
    pub(crate) fn expect_grant(&self, owner: Owner, signal: &Arc<Signal>) {
        let signal = Arc::clone(signal);
        let expecting = Expecting { signal, over: None };
        self.state().queued.insert(owner.request, expecting);
    }

    /// From now on, a grant to this owner that is heard over another link is not told.
    pub(crate) fn expect_over(&self, owner: Owner, link: Option<Link>) {
        if let Some(expecting) = self.state().queued.get_mut(&owner.request) {
            expecting.over = link;
        }
    }

    pub(crate) fn forget_grant(&self, owner: Owner) {
        self.state().queued.remove(&owner.request);
    }

    /// Wakes every request, wherever it waits, in the order in which they came.
    pub(crate) fn wake_all(&self) {
        let state = self.state();
        let lines = state.lines.iter();
        let places: BTreeMap<u64, WakeUp> = lines
            .clone()
            .flat_map(|(_, line)| &line.places)
            .map(|(ticket, one)| (*ticket, one.signal.wake_up()))
            .collect();
        let settled: BTreeMap<LockKey, Arc<Notify>> = lines
            .map(|(key, line)| (key.clone(), Arc::clone(&line.settled)))
            .collect();
        drop(state);
        drop(places);
        settled
            .values()
            .for_each(|settled| settled.notify_waiters());
    }

    /// How many requests there are.
    pub(crate) fn waiting(&self) -> usize {
        self.state()
            .lines
            .values()
            .map(|line| line.places.len())
            .sum()
    }
}

impl State {
    fn remove_if_empty(&mut self, key: &LockKey) {
        if self
            .lines
            .get(key)
            .is_some_and(|line| line.places.is_empty() && line.releasing == 0 && line.turns == 0)
        {
            self.lines.remove(key);
        }
    }
}

impl Listener for Lines {
    fn granted(&self, link: Link, owner: Owner, token: Option<u64>) -> WakeUp {
        let state = self.state();
        let expecting = state.queued.get(&owner.request);
        let expecting = expecting.filter(|one| one.over.is_none_or(|over| over == link));
        let signal = expecting.map(|one| Arc::clone(&one.signal));
        drop(state);
        signal.map_or_else(WakeUp::default, |signal| {
            signal.put(|inbox| inbox.granted = Some((link, token)))
        })
    }

    fn look_again(&self) {
        let state = self.state();
        let queued = state.queued.values();
        let queued: Vec<_> = queued.map(|one| Arc::clone(&one.signal)).collect();
        drop(state);
        for signal in queued {
            drop(signal.put(|inbox| inbox.look_again = true));
        }
    }

    fn freed(&self, ended: Ended) {
        let state = self.state();
        let line = state.lines.get(&ended.key);
        let first = line.and_then(Line::first);
        let signal = first.map(|(_, first)| Arc::clone(&first.signal));
        drop(state);
        if let Some(signal) = signal {
            drop(signal.put(|inbox| inbox.look_again = true));
        }
    }
}

/// A request's place; dropping it lets the next one move up.
#[derive(Debug)]
pub(crate) struct Place {
    lines: Arc<Lines>,
    key: LockKey,
    ticket: u64,
    pub(crate) signal: Arc<Signal>,
}

impl Place {
    /// Whether this is the first request of its key, and no release of it is under way. Whoever asks is awake.
    pub(crate) fn is_first(&self) -> bool {
        let mut state = self.lines.state();
        let line = state.lines.get_mut(&self.key);
        line.is_some_and(|line| {
            if let Some(place) = line.places.get_mut(&self.ticket) {
                place.asleep = false;
            }
            let first = line.first().map(|(first, _)| first);
            line.releasing == 0 && first == Some(self.ticket)
        })
    }

    /// Whether another task of this process has a hold that may be passed on to this request.
    pub(crate) fn looks_on(&self) -> bool {
        let state = self.lines.state();
        let line = state.lines.get(&self.key);
        line.is_some_and(|line| {
            line.turns > 0 && line.places.get(&self.ticket).is_some_and(|one| one.willing)
        })
    }

    /// Whether other requests of this process wait behind this one.
    pub(crate) fn has_others_behind(&self) -> bool {
        let state = self.lines.state();
        let line = state.lines.get(&self.key);
        line.is_some_and(|line| line.places.len() > 1)
    }

    /// From now on the request asks the store, and nothing is passed on to it; unless that has just happened.
    pub(crate) fn asks_the_store(&self) -> Option<Baton> {
        let mut state = self.lines.state();
        let line = state.lines.get_mut(&self.key)?;
        line.places.get_mut(&self.ticket)?.willing = false;
        self.signal.take_baton()
    }

    /// Leaves the line, and gives back what was passed on to the request and not used.
    pub(crate) fn leave(&self) -> Option<Baton> {
        let mut state = self.lines.state();
        let next = state.lines.get_mut(&self.key).and_then(|line| {
            line.places.remove(&self.ticket)?;
            line.first().map(|(_, next)| next.signal.wake_up())
        });
        let baton = self.signal.take_baton();
        state.remove_if_empty(&self.key);
        // Tasks are woken outside of the lock: an executor may run them at once.
        drop(state);
        drop(next);
        baton
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let baton = self.leave();
        debug_assert!(
            baton.is_none(),
            "whoever leaves the line gives back the hold"
        );
    }
}

/// The process has a hold of the key that may be passed on. When that ends, the first request asks the store.
#[derive(Debug)]
pub(crate) struct Mark {
    lines: Arc<Lines>,
    key: LockKey,
}

impl Mark {
    pub(super) fn key(&self) -> &LockKey {
        &self.key
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut state = self.lines.state();
        let next = state.lines.get_mut(&self.key).and_then(|line| {
            line.turns -= 1;
            let (_, first) = line.first()?;
            first.willing.then(|| first.signal.wake_up())
        });
        state.remove_if_empty(&self.key);
        drop(state);
        drop(next);
    }
}

/// A release of the key is under way.
#[derive(Debug)]
pub(crate) struct Releasing {
    lines: Arc<Lines>,
    key: LockKey,
}

impl Drop for Releasing {
    fn drop(&mut self) {
        let mut state = self.lines.state();
        let settled = state.lines.get_mut(&self.key).and_then(|line| {
            line.releasing -= 1;
            let first = line.first().map(|(_, first)| first.signal.wake_up());
            (line.releasing == 0).then(|| (Arc::clone(&line.settled), first))
        });
        state.remove_if_empty(&self.key);
        drop(state);
        if let Some((settled, first)) = settled {
            settled.notify_waiters();
            drop(first);
        }
    }
}
