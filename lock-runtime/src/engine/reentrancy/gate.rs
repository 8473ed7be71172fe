//! The nested gate: what one guard lends. Nested calls use its hold one at a time, or several
//! together that only read.
//!
//! Those that wait stand in a local queue of the gate's own, with its rule for requests that nobody
//! polls. The gate closes when its guard ends. Then all that the guard has lent is lost. Only a
//! lent body that is being polled at that moment, on whatever thread, is waited for: the hold goes
//! on until this poll has ended.

use std::sync::{Arc, OnceLock};

use lock_store::{LockKey, Mutex};
use tokio::sync::Notify;

use crate::engine::hold::Hold;
use crate::engine::local_queue::LocalQueue;
use crate::error::{LockError, LostReason};

/// What one guard lends to nested requests.
pub(crate) struct NestedGate {
    hold: Arc<Hold>,
    /// The gate that lends this guard its own share of the hold, if it is nested itself.
    outer: Option<Arc<NestedGate>>,
    /// Whether that one lends it to other readers, too.
    is_shared: bool,
    state: Mutex<GateState>,
    /// The waiting requests. Made by the first of them.
    queue: OnceLock<Arc<LocalQueue>>,
    /// No lent body is polled any more.
    at_rest: Notify,
}

#[derive(Default)]
struct GateState {
    /// Nested calls that use the hold and only read.
    readers: usize,
    /// A nested call that uses it alone.
    is_taken: bool,
    /// The guard has ended.
    is_closed: bool,
    /// Lent bodies that are being polled.
    polled: usize,
    /// Ends the guard's part of the hold after their polls.
    end: Option<End>,
}

/// What is left to do when no lent body is polled any more.
pub(crate) type End = Box<dyn FnOnce() + Send>;

/// A nested call may use the hold until this is dropped.
#[derive(Debug)]
pub(crate) struct NestedPermit {
    gate: Arc<NestedGate>,
    shared: bool,
}

impl NestedGate {
    /// That of a guard which has what `outer` lends, and whether it shares that.
    pub(crate) fn new(hold: Arc<Hold>, outer: Option<(Arc<Self>, bool)>) -> Arc<Self> {
        let (outer, is_shared) = outer.map_or((None, false), |(gate, shared)| (Some(gate), shared));
        Arc::new(Self {
            hold,
            outer,
            is_shared,
            state: Mutex::default(),
            queue: OnceLock::new(),
            at_rest: Notify::new(),
        })
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    pub(super) fn outer(&self) -> Option<&Arc<Self>> {
        self.outer.as_ref()
    }

    /// This gate and those that lend to it.
    pub(super) fn and_outer(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |gate| gate.outer.as_deref())
    }

    /// Whether other readers may use the hold beside what is lent here.
    pub(super) fn is_of_a_reader(&self) -> bool {
        self.and_outer().any(|gate| gate.is_shared)
    }

    /// The right to use the hold, without a wait and not before those that wait.
    pub(crate) fn enter_now(self: &Arc<Self>, shared: bool) -> Option<NestedPermit> {
        match self.has_waiters() {
            true => None,
            false => self.enter(shared),
        }
    }

    /// The right to use the hold, for the request whose turn it is.
    pub(super) fn enter(self: &Arc<Self>, shared: bool) -> Option<NestedPermit> {
        let mut state = self.state.lock();
        if state.is_taken || (!shared && state.readers > 0) {
            return None;
        }
        match shared {
            true => state.readers += 1,
            false => state.is_taken = true,
        }
        let gate = Arc::clone(self);
        Some(NestedPermit { gate, shared })
    }

    fn has_waiters(&self) -> bool {
        self.queue.get().is_some_and(|queue| queue.has_waiters())
    }

    /// Where those stand that wait.
    pub(super) fn queue(&self) -> &Arc<LocalQueue> {
        self.queue
            .get_or_init(|| LocalQueue::apart(self.hold.key().clone()))
    }

    /// Why what was borrowed here can't be used any more.
    pub(crate) fn loss(&self) -> Option<LostReason> {
        self.hold.loss().or_else(|| {
            let is_over = self.and_outer().any(Self::is_closed);
            is_over.then_some(LostReason::OuterEnded)
        })
    }

    /// Refuses a request for this key if it can't.
    pub(super) fn check(&self, key: &LockKey) -> Result<(), LockError> {
        let loss = self.loss();
        loss.map_or(Ok(()), |reason| Err(LockError::lost(key.clone(), reason)))
    }

    /// Waits for that.
    pub(super) async fn until_lost(&self, key: &LockKey) -> LockError {
        let reason = self.hold.until_lost(|| self.loss()).await;
        LockError::lost(key.clone(), reason)
    }

    /// Whether its guard has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Its guard ends: what it has lent is lost.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let is_lent = state.is_taken || state.readers > 0;
        drop(state);
        if is_lent || self.has_waiters() {
            self.hold.notify_of_loss();
        }
    }

    /// Waits until no lent body is polled any more. None is, once the gate is closed.
    pub(crate) async fn until_at_rest(&self) {
        loop {
            let at_rest = self.at_rest.notified();
            if self.state.lock().polled == 0 {
                return;
            }
            at_rest.await;
        }
    }

    /// Has the polls of lent bodies that are under way end the guard's part of the hold. False if
    /// there is none.
    pub(crate) fn leave_end_to_polls(&self, end: impl FnOnce() -> End) -> bool {
        let mut state = self.state.lock();
        let is_polled = state.polled > 0;
        if is_polled && state.end.is_none() {
            state.end = Some(end());
        }
        is_polled
    }

    /// Counts a poll, unless the gate is closed.
    pub(super) fn enter_poll(&self) -> bool {
        let mut state = self.state.lock();
        let is_open = !state.is_closed;
        state.polled += usize::from(is_open);
        is_open
    }

    pub(super) fn leave_poll(&self) {
        let mut state = self.state.lock();
        state.polled -= 1;
        if state.polled > 0 || !state.is_closed {
            return;
        }
        let end = state.end.take();
        drop(state);
        self.at_rest.notify_waiters();
        if let Some(end) = end {
            end();
        }
    }
}

impl NestedPermit {
    pub(crate) fn gate(&self) -> &Arc<NestedGate> {
        &self.gate
    }

    /// Whether others may have one of the same gate.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }
}

impl Drop for NestedPermit {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        match self.shared {
            true => state.readers -= 1,
            false => state.is_taken = false,
        }
        drop(state);
        if let Some(queue) = self.gate.queue.get() {
            queue.wake_first();
        }
    }
}

lock_store::show!(NestedGate as it: key = it.hold.key());

/// As long as this is there, no guard that lends the hold gives it back: neither the one that the
/// body has borrowed from, nor those around it.
pub(crate) struct Polling<'g> {
    gate: &'g NestedGate,
    /// How many of the gates, from the inside, know of the poll.
    entered: usize,
}

impl<'g> Polling<'g> {
    /// `None` if one of them has ended.
    pub(crate) fn enter(gate: &'g NestedGate) -> Option<Self> {
        let mut polling = Self { gate, entered: 0 };
        for gate in gate.and_outer() {
            if !gate.enter_poll() {
                return None;
            }
            polling.entered += 1;
        }
        Some(polling)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        let entered = self.gate.and_outer().take(self.entered);
        entered.for_each(NestedGate::leave_poll);
    }
}
