//! All local queues of a client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_store::{Instant, LockKey, Mutex, SweepingMap, WakeUp};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::queue::Releasing;
use super::skipped::{Skipped, call_next, overdue};
use super::state::{
    Doing, Handoff, HandoffMarker, LocalQueue, QueueEntry, QueueState, QueuedRequest, Signal,
};
use super::waiter::Waiter;

#[derive(Debug, Default)]
pub(crate) struct LocalQueues {
    /// The queues, and some empty ones for the next request of their keys.
    table: Mutex<SweepingMap<LockKey, Arc<LocalQueue>>>,
    tickets: AtomicU64,
    /// Queues in which somebody sleeps, for the patrol.
    patrolled: Mutex<Vec<Arc<LocalQueue>>>,
    /// Calls the patrol.
    patrol: Notify,
}

impl LocalQueues {
    /// The key's queue, after something new entered it.
    fn enter(&self, key: &LockKey, change: impl FnOnce(&mut QueueState)) -> Arc<LocalQueue> {
        let mut table = self.table.lock();
        table.sweep(|queue| !queue.state.lock().is_empty());
        if let Some(queue) = table.get(key) {
            change(&mut queue.state.lock());
            return Arc::clone(queue);
        }
        let queue = LocalQueue::apart(key.clone());
        change(&mut queue.state.lock());
        table.insert(queue.key.clone(), Arc::clone(&queue));
        queue
    }

    fn find(&self, key: &LockKey) -> Option<Arc<LocalQueue>> {
        self.table.lock().get(key).cloned()
    }

    /// A waiter at the end of the key's queue, and whether it is the first. Only a `willing` waiter
    /// gets a handoff.
    pub(crate) fn join(
        &self,
        key: &LockKey,
        request: QueuedRequest,
        willing: bool,
        doing: Doing,
    ) -> (Waiter, bool) {
        let signal = Signal::new(doing);
        let entry = QueueEntry::new(&signal, request, willing);
        let (mut ticket, mut is_first) = (0, false);
        let queue = self.enter(key, |state| {
            ticket = self.push(state, entry);
            is_first = state.is_first(ticket);
        });
        let waiter = Waiter {
            queue,
            ticket,
            signal,
        };
        (waiter, is_first)
    }

    /// A waiter at the end of a queue that is in no table.
    pub(crate) fn join_apart(
        &self,
        queue: &Arc<LocalQueue>,
        request: QueuedRequest,
        doing: Doing,
    ) -> Waiter {
        let signal = Signal::new(doing);
        let entry = QueueEntry::new(&signal, request, false);
        let ticket = self.push(&mut queue.state.lock(), entry);
        let queue = Arc::clone(queue);
        Waiter {
            queue,
            ticket,
            signal,
        }
    }

    /// Under the queue's lock, so that the order is that of the tickets.
    fn push(&self, state: &mut QueueState, entry: QueueEntry) -> u64 {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        state.entries.0.push_back((ticket, entry));
        ticket
    }

    /// Until this is dropped, a release of the key is under way.
    pub(crate) fn releasing(&self, key: &LockKey) -> Releasing {
        let queue = self.enter(key, |state| state.releasing += 1);
        Releasing { queue }
    }

    /// Ends when the release of this key is no longer under way; `None` if none is.
    pub(crate) fn until_released(&self, key: &LockKey) -> Option<OwnedNotified> {
        let queue = self.find(key)?;
        let mut state = queue.state.lock();
        if state.releasing == 0 {
            return None;
        }
        let released = state.released.get_or_insert_default();
        Some(Arc::clone(released).notified_owned())
    }

    /// True if no task of this process waits for or is releasing the key.
    pub(crate) fn is_idle(&self, key: &LockKey) -> bool {
        let table = self.table.lock();
        table
            .get(key)
            .is_none_or(|queue| queue.state.lock().is_idle())
    }

    /// Whether this process has a hold of the key that may be handed off.
    pub(crate) fn has_hold(&self, key: &LockKey) -> bool {
        let queue = self.find(key);
        queue.is_some_and(|queue| queue.state.lock().tenures > 0)
    }

    /// As long as the marker is there, the process has a hold of the key that may be handed off.
    pub(crate) fn marker(&self, key: &LockKey) -> HandoffMarker {
        let queue = self.enter(key, |state| state.tenures += 1);
        HandoffMarker { queue }
    }

    /// Hands a hold off to the first waiter of its key. Returns it if there is none, or if the
    /// first stands in the store's queue.
    pub(super) fn hand_off(&self, handoff: Handoff) -> Result<WakeUp, Handoff> {
        let queue = Arc::clone(handoff.queue());
        let mut state = queue.state.lock();
        let first = state.entries.0.front_mut();
        let Some((_, first)) = first.filter(|(_, first)| first.willing) else {
            return Err(handoff);
        };
        first.willing = false;
        Ok(first.signal.put(|inbox| inbox.handoff = Some(handoff)))
    }

    /// Takes back every handoff that its waiter has not seen yet.
    pub(crate) fn take_handoffs(&self) -> Vec<Handoff> {
        let table = self.table.lock();
        let queues = table.values().map(|queue| queue.state.lock());
        queues
            .flat_map(|state| {
                let entries = state.entries.0.iter();
                let handoffs = entries.filter_map(|(_, entry)| entry.signal.take_handoff());
                handoffs.collect::<Vec<_>>()
            })
            .collect()
    }

    /// The patrol looks after this queue as long as anybody waits in it.
    pub(crate) fn put_on_patrol(&self, queue: &Arc<LocalQueue>) {
        if std::mem::replace(&mut queue.state.lock().patrolled, true) {
            return;
        }
        self.patrolled.lock().push(Arc::clone(queue));
        self.patrol.notify_one();
    }

    /// Ends when there is a queue to look after; or at a stop.
    pub(super) async fn patrol(&self) {
        self.patrol.notified().await;
    }

    /// Ends [`patrol`](Self::patrol).
    pub(crate) fn stop(&self) {
        self.patrol.notify_one();
    }

    /// Skips the waiters for which there was something to do at several looks in a row, and
    /// which were not polled. `None` if nobody waits in any queue.
    pub(super) fn find_unpolled(&self, now: Instant) -> Option<Vec<Skipped>> {
        let queues = std::mem::take(&mut *self.patrolled.lock());
        let mut skipped = Vec::new();
        let mut kept = Vec::new();
        for queue in queues {
            let overdue = overdue(&queue, now).into_iter();
            let taken: Vec<_> = overdue
                .filter_map(|ticket| Skipped::take(&queue, ticket))
                .collect();
            if !taken.is_empty() {
                call_next(&queue, taken.len());
            }
            skipped.extend(taken);
            let mut state = queue.state.lock();
            state.patrolled = !state.entries.0.is_empty();
            let patrolled = state.patrolled;
            drop(state);
            if patrolled {
                kept.push(queue);
            }
        }
        let mut patrolled = self.patrolled.lock();
        patrolled.append(&mut kept);
        (!patrolled.is_empty() || !skipped.is_empty()).then_some(skipped)
    }

    /// Something may be had that the first waiter of this key waits for.
    pub(in crate::engine) fn on_freed(&self, key: &LockKey) {
        let signal = self.find(key).and_then(|queue| {
            let state = queue.state.lock();
            state.first().map(|(_, first)| Arc::clone(&first.signal))
        });
        if let Some(signal) = signal {
            signal.recheck();
        }
    }

    /// Wakes every request, wherever it waits, in the order of their arrival.
    pub(crate) fn wake_all(&self) {
        let mut waiters = BTreeMap::new();
        let mut released = BTreeMap::new();
        for (key, queue) in self.table.lock().iter() {
            let state = queue.state.lock();
            let wake_ups = state.entries.0.iter();
            waiters.extend(wake_ups.map(|(ticket, one)| (*ticket, one.signal.wake_up())));
            let call = state.released.clone();
            released.extend(call.map(|call| (key.clone(), call)));
        }
        drop(waiters);
        released.values().for_each(|call| call.notify_waiters());
    }

    /// When the oldest of the requests that wait was asked for. Looks at each.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let table = self.table.lock();
        let oldest = |queue: &Arc<LocalQueue>| {
            let state = queue.state.lock();
            let since = state.entries.0.iter().map(|(_, entry)| entry.request.since);
            since.min()
        };
        table.values().filter_map(oldest).min()
    }

    /// Calls `note` with the keys that tasks of this process wait for or release.
    pub(in crate::engine) fn each_key(&self, note: &mut impl FnMut(&LockKey)) {
        let table = self.table.lock();
        let used = table.values().filter(|one| !one.state.lock().is_empty());
        used.for_each(|queue| note(&queue.key));
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        let table = self.table.lock();
        let lengths = table.values().map(|one| one.state.lock().entries.0.len());
        lengths.sum()
    }
}

#[cfg(test)]
mod tests;
