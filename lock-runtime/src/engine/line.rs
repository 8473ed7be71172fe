//! Requests of this process, in arrival order for each key.
//!
//! Only the first of a key's line talks to the store (with `fair` all do, and only the first looks again), so a
//! thousand waiting tasks cost the store no more than one. A release in the background goes before later requests.
//! A request that does not take what is passed on to it, because nobody polls it, is passed over until somebody does.

mod place;
mod queued;
mod signal;
mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lock_store::{Ended, Link, Listener, LockKey, Owner, WakeUp};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use self::queued::{Expecting, Queued};
use self::table::{Line, State, Table, Waiting};
use super::turn::Baton;

pub(crate) use self::place::{Mark, Place, Releasing};
pub(crate) use self::signal::{Granted, Signal};

/// All lines of a client, and the way from an owner token to the request that waits under it.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Mutex<Table>,
    /// Requests that stand, or may stand, in the store's queue.
    queued: Mutex<Queued>,
    tickets: AtomicU64,
    /// Something was passed on, and nobody looks whether it is taken.
    patrol: Notify,
    /// Whether somebody looks whether what is passed on is taken.
    patrolled: AtomicBool,
    /// Whether something was passed on since the last look.
    passing: AtomicBool,
}

impl Lines {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queued(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key's line, with something new in it.
    fn enter(&self, key: &LockKey, change: impl FnOnce(&mut State)) -> Arc<Line> {
        self.table().enter(key, change)
    }

    /// A place at the end of the key's line, and whether it is the first. A hold is passed on only to a request that is
    /// willing.
    pub(crate) fn join(&self, key: &LockKey, willing: bool) -> (Place, bool) {
        let signal = Arc::<Signal>::default();
        let waiting = Waiting {
            signal: Arc::clone(&signal),
            willing,
            asleep: false,
        };
        let (mut ticket, mut is_first) = (0, false);
        let line = self.enter(key, |state| {
            // Under the lock, so that the order is that of the tickets.
            ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
            state.places.0.push_back((ticket, waiting));
            is_first = state.is_first(ticket);
        });
        let place = Place {
            line,
            ticket,
            signal,
        };
        (place, is_first)
    }

    /// Until this is dropped, a release of the key is under way.
    pub(crate) fn releasing(&self, key: &LockKey) -> Releasing {
        let line = self.enter(key, |state| state.releasing += 1);
        Releasing { line }
    }

    /// Ends when the release of this key is no longer under way; `None` if none is.
    pub(crate) fn settled(&self, key: &LockKey) -> Option<OwnedNotified> {
        let line = self.table().lines.get(key).cloned()?;
        let mut state = line.state();
        if state.releasing == 0 {
            return None;
        }
        let settled = state.settled.get_or_insert_default();
        Some(Arc::clone(settled).notified_owned())
    }

    /// Whether nobody in this process waits for the key or releases it.
    pub(crate) fn is_idle(&self, key: &LockKey) -> bool {
        self.table().lines.get(key).is_none_or(|line| {
            let state = line.state();
            state.places.0.is_empty() && state.releasing == 0
        })
    }

    /// As long as the mark is there, the process has a hold of the key that may be passed on.
    pub(crate) fn mark(&self, key: &LockKey) -> Mark {
        let line = self.enter(key, |state| state.turns += 1);
        Mark { line }
    }

    /// Passes a hold on to the first request of its key, unless that stands in the store's queue, or there is none.
    pub(crate) fn pass(&self, baton: Baton, now: Instant) -> Result<WakeUp, Baton> {
        let line = Arc::clone(&baton.mark().line);
        let mut state = line.state();
        let first = state.places.0.iter_mut().find(|(_, one)| !one.asleep);
        let Some((ticket, first)) = first.filter(|(_, first)| first.willing) else {
            return Err(baton);
        };
        first.willing = false;
        let ticket = *ticket;
        let wake_up = first.signal.put(|inbox| inbox.baton = Some(baton));
        state.passed = Some((ticket, now));
        drop(state);
        self.passing.store(true, Ordering::SeqCst);
        if !self.patrolled.swap(true, Ordering::SeqCst) {
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
        let mut going_on = self.passing.swap(false, Ordering::SeqCst);
        let mut taken_back = Vec::new();
        for line in self.table().lines.values() {
            let mut guard = line.state();
            let state = &mut *guard;
            let Some((ticket, at)) = state.passed else {
                continue;
            };
            match state.places.get_mut(ticket) {
                Some(place) if at <= since => {
                    if let Some(baton) = place.signal.take_baton() {
                        place.asleep = true;
                        taken_back.push(baton);
                    }
                    state.passed = None;
                }
                Some(_) => going_on = true,
                None => state.passed = None,
            }
        }
        if going_on || !taken_back.is_empty() {
            return Some(taken_back);
        }
        self.patrolled.store(false, Ordering::SeqCst);
        // What was passed on meanwhile relied on this look.
        if self.passing.load(Ordering::SeqCst) {
            self.patrolled.store(true, Ordering::SeqCst);
            return Some(taken_back);
        }
        None
    }

    /// From now on, a grant to this owner is told to the signal, over whichever link it comes.
    pub(crate) fn expect_grant(&self, owner: Owner, signal: &Arc<Signal>) {
        let signal = Arc::clone(signal);
        let expecting = Expecting { signal, over: None };
        self.queued().expecting.insert(owner.request, expecting);
    }

    /// From now on, a grant to this owner that is heard over another link is not told.
    pub(crate) fn expect_over(&self, owner: Owner, link: Option<Link>) {
        if let Some(expecting) = self.queued().expecting.get_mut(&owner.request) {
            expecting.over = link;
        }
    }

    pub(crate) fn forget_grant(&self, owner: Owner) {
        self.queued().expecting.remove(&owner.request);
    }

    /// A command that was sent then has changed the store, as was answered over this link. What is heard over it from now on
    /// was said by the same server after that: a replica changes nothing, but passes on what its master said.
    pub(crate) fn wrote(&self, link: Link, sent: Instant) {
        self.queued().wrote(link, sent);
    }

    /// Has these look again.
    fn call(&self, whom: impl Fn(&Expecting) -> bool) {
        let queued = self.queued();
        let called = queued.expecting.values().filter(|one| whom(one));
        let signals: Vec<_> = called.map(|one| Arc::clone(&one.signal)).collect();
        drop(queued);
        for signal in signals {
            drop(signal.put(|inbox| inbox.look_again = true));
        }
    }

    /// Wakes every request, wherever it waits, in the order in which they came.
    pub(crate) fn wake_all(&self) {
        let mut places = BTreeMap::new();
        let mut settled = BTreeMap::new();
        for (key, line) in &self.table().lines {
            let state = line.state();
            let wake_ups = state.places.0.iter();
            places.extend(wake_ups.map(|(ticket, one)| (*ticket, one.signal.wake_up())));
            settled.extend(state.settled.clone().map(|settled| (key.clone(), settled)));
        }
        drop(places);
        settled
            .values()
            .for_each(|settled| settled.notify_waiters());
    }

    /// How many requests there are.
    pub(crate) fn waiting(&self) -> usize {
        let table = self.table();
        let lines = table.lines.values();
        lines.map(|line| line.state().places.0.len()).sum()
    }
}

impl Listener for Lines {
    fn granted(&self, link: Link, owner: Owner, token: Option<u64>) -> WakeUp {
        let queued = self.queued();
        let after = queued.written_over(link);
        let expecting = queued.expecting.get(&owner.request);
        let expecting = expecting.filter(|one| one.over.is_none_or(|over| over == link));
        let signal = expecting.map(|one| Arc::clone(&one.signal));
        drop(queued);
        signal.map_or_else(WakeUp::default, |signal| {
            let granted = Granted { link, token, after };
            signal.put(|inbox| inbox.granted = Some(granted))
        })
    }

    fn recheck(&self) {
        self.call(|_| true);
    }

    fn lost(&self, link: Link) {
        // Who has asked and has no reply yet may have asked over it.
        self.call(|one| one.over.is_none_or(|over| over == link));
    }

    fn freed(&self, ended: Ended) {
        let line = self.table().lines.get(&ended.key).cloned();
        let signal = line.and_then(|line| {
            let state = line.state();
            state.first().map(|(_, first)| Arc::clone(&first.signal))
        });
        if let Some(signal) = signal {
            drop(signal.put(|inbox| inbox.look_again = true));
        }
    }
}
