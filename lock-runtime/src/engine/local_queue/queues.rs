//! All local queues of a client, and the way from an owner token to the waiter that has it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lock_store::{Ended, Instant, Link, Listener, LockKey, Mutex, Owner, WakeUp};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::expected_grants::{ExpectedGrant, ExpectedGrants};
use super::queue::{QueueTable, enter};
use super::releasing::Releasing;
use super::state::{
    Handoff, HandoffMarker, HeardGrant, LocalQueue, QueueEntry, QueueState, Signal,
};
use super::waiter::Waiter;

/// All local queues of a client.
#[derive(Debug, Default)]
pub(crate) struct LocalQueues {
    table: Mutex<QueueTable>,
    /// Requests that stand, or may stand, in the store's queue.
    expected_grants: Mutex<ExpectedGrants>,
    tickets: AtomicU64,
    /// Calls the patrol: there is a handoff, and nobody looks whether it is taken.
    patrol: Notify,
    /// Whether the patrol looks whether handoffs are taken.
    patrolled: AtomicBool,
    /// Whether there was a handoff since the patrol's last look.
    passing: AtomicBool,
}

impl LocalQueues {
    fn enter(&self, key: &LockKey, change: impl FnOnce(&mut QueueState)) -> Arc<LocalQueue> {
        enter(&mut self.table.lock(), key, change)
    }

    fn find(&self, key: &LockKey) -> Option<Arc<LocalQueue>> {
        self.table.lock().get(key).cloned()
    }

    /// A waiter at the end of the key's queue, and whether it is the first. Only a `willing` waiter
    /// gets a handoff.
    pub(crate) fn join(&self, key: &LockKey, willing: bool) -> (Waiter, bool) {
        let signal = Arc::<Signal>::default();
        let entry = QueueEntry {
            signal: Arc::clone(&signal),
            willing,
            asleep: false,
        };
        let (mut ticket, mut is_first) = (0, false);
        let queue = self.enter(key, |state| {
            // Under the lock, so that the order is that of the tickets.
            ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
            state.entries.0.push_back((ticket, entry));
            is_first = state.is_first(ticket);
        });
        let waiter = Waiter {
            queue,
            ticket,
            signal,
        };
        (waiter, is_first)
    }

    /// Until this is dropped, a release of the key is under way.
    pub(crate) fn releasing(&self, key: &LockKey) -> Releasing {
        let queue = self.enter(key, |state| state.releasing += 1);
        Releasing { queue }
    }

    /// Ends when the release of this key is no longer under way; `None` if none is.
    pub(crate) fn settled(&self, key: &LockKey) -> Option<OwnedNotified> {
        let queue = self.find(key)?;
        let mut state = queue.state.lock();
        if state.releasing == 0 {
            return None;
        }
        let settled = state.settled.get_or_insert_default();
        Some(Arc::clone(settled).notified_owned())
    }

    /// True if no task of this process waits for or is releasing the key.
    pub(crate) fn is_idle(&self, key: &LockKey) -> bool {
        let table = self.table.lock();
        table
            .get(key)
            .is_none_or(|queue| queue.state.lock().is_idle())
    }

    /// As long as the marker is there, the process has a hold of the key that may be passed on.
    pub(crate) fn marker(&self, key: &LockKey) -> HandoffMarker {
        let queue = self.enter(key, |state| state.tenures += 1);
        HandoffMarker { queue }
    }

    /// Passes a hold on to the first waiter of its key. Gives it back if there is none, or if the
    /// first stands in the store's queue.
    pub(super) fn pass_on(&self, handoff: Handoff, now: Instant) -> Result<WakeUp, Handoff> {
        let queue = Arc::clone(handoff.queue());
        let mut state = queue.state.lock();
        let first = state.entries.0.iter_mut().find(|(_, one)| !one.asleep);
        let Some((ticket, first)) = first.filter(|(_, first)| first.willing) else {
            return Err(handoff);
        };
        first.willing = false;
        let ticket = *ticket;
        let wake_up = first.signal.put(|inbox| inbox.handoff = Some(handoff));
        state.passed = Some((ticket, now));
        drop(state);
        self.passing.store(true, Ordering::SeqCst);
        if !self.patrolled.swap(true, Ordering::SeqCst) {
            self.patrol.notify_one();
        }
        Ok(wake_up)
    }

    /// Ends when there was a handoff and [`not_taken`](Self::not_taken) should be asked from now
    /// on; or at a stop.
    pub(super) async fn passing(&self) {
        self.patrol.notified().await;
    }

    /// Ends [`passing`](Self::passing).
    pub(crate) fn stop(&self) {
        self.patrol.notify_one();
    }

    /// Takes back the handoffs from before `since` that are not taken. `None` if there is nothing
    /// to look for any more.
    pub(crate) fn not_taken(&self, since: Instant) -> Option<Vec<Handoff>> {
        let mut going_on = self.passing.swap(false, Ordering::SeqCst);
        let mut taken_back = Vec::new();
        for queue in self.table.lock().values() {
            let mut guard = queue.state.lock();
            let state = &mut *guard;
            let Some((ticket, at)) = state.passed else {
                continue;
            };
            match state.entries.get_mut(ticket) {
                Some(entry) if at <= since => {
                    if let Some(handoff) = entry.signal.take_handoff() {
                        entry.asleep = true;
                        taken_back.push(handoff);
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
        // A handoff that came meanwhile relied on this look.
        if self.passing.load(Ordering::SeqCst) {
            self.patrolled.store(true, Ordering::SeqCst);
            return Some(taken_back);
        }
        None
    }

    /// From now on, a grant to this owner is told to the signal, over whichever link it comes.
    pub(crate) fn expect_grant(&self, owner: Owner, signal: &Arc<Signal>) {
        let signal = Arc::clone(signal);
        let expected = ExpectedGrant { signal, over: None };
        let mut grants = self.expected_grants.lock();
        grants.expected.insert(owner.request, expected);
    }

    /// From now on, a grant to this owner that is heard over another link is not told.
    pub(crate) fn expect_over(&self, owner: Owner, link: Option<Link>) {
        let mut grants = self.expected_grants.lock();
        if let Some(expected) = grants.expected.get_mut(&owner.request) {
            expected.over = link;
        }
    }

    pub(crate) fn forget_grant(&self, owner: Owner) {
        let mut grants = self.expected_grants.lock();
        grants.expected.remove(&owner.request);
    }

    /// The answer over this link says that a command sent then has changed the store. Whatever is
    /// heard over the link from now on was said by the same server after that: a replica changes
    /// nothing, but passes on what its master said.
    pub(crate) fn wrote(&self, link: Link, sent: Instant) {
        self.expected_grants.lock().wrote(link, sent);
    }

    fn recheck_if(&self, affected: impl Fn(&ExpectedGrant) -> bool) {
        let grants = self.expected_grants.lock();
        let affected = grants.expected.values().filter(|one| affected(one));
        let signals: Vec<_> = affected.map(|one| Arc::clone(&one.signal)).collect();
        drop(grants);
        for signal in signals {
            drop(signal.put(|inbox| inbox.recheck = true));
        }
    }

    /// Wakes every request, wherever it waits, in the order of their arrival.
    pub(crate) fn wake_all(&self) {
        let mut waiters = BTreeMap::new();
        let mut settled = BTreeMap::new();
        for (key, queue) in self.table.lock().iter() {
            let state = queue.state.lock();
            let wake_ups = state.entries.0.iter();
            waiters.extend(wake_ups.map(|(ticket, one)| (*ticket, one.signal.wake_up())));
            settled.extend(state.settled.clone().map(|settled| (key.clone(), settled)));
        }
        drop(waiters);
        settled
            .values()
            .for_each(|settled| settled.notify_waiters());
    }

    /// How many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        let table = self.table.lock();
        let lengths = table.values().map(|one| one.state.lock().entries.0.len());
        lengths.sum()
    }
}

impl Listener for LocalQueues {
    fn granted(&self, link: Link, owner: Owner, token: Option<u64>) -> WakeUp {
        let grants = self.expected_grants.lock();
        let after = grants.written_over(link);
        let expected = grants.expected.get(&owner.request);
        let expected = expected.filter(|one| one.over.is_none_or(|over| over == link));
        let signal = expected.map(|one| Arc::clone(&one.signal));
        drop(grants);
        signal.map_or_else(WakeUp::default, |signal| {
            let granted = HeardGrant { link, token, after };
            signal.put(|inbox| inbox.granted = Some(granted))
        })
    }

    fn recheck(&self) {
        self.recheck_if(|_| true);
    }

    fn lost(&self, link: Link) {
        // A request without a reply yet may have asked over it.
        self.recheck_if(|one| one.over.is_none_or(|over| over == link));
    }

    fn freed(&self, ended: Ended) {
        let signal = self.find(&ended.key).and_then(|queue| {
            let state = queue.state.lock();
            state.first().map(|(_, first)| Arc::clone(&first.signal))
        });
        if let Some(signal) = signal {
            drop(signal.put(|inbox| inbox.recheck = true));
        }
    }
}
