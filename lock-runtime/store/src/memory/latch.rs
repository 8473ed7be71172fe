//! Count-down latches of the embedded store.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::SharedName;
use crate::instant::Instant;
use crate::rules::{LatchRecord, StoredLatch};
use crate::timing::{CALL_REMEMBERED, QUEUE_TTL};
use crate::{LatchCall, LatchCounted, LatchFound, LatchSet, Owner, SweepingMap};

/// All latches, their waiters, and the remembered calls.
#[derive(Debug, Default)]
pub(super) struct Latches {
    entries: SweepingMap<SharedName, Entry>,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    latch: Option<StoredLatch>,
    /// When each place expires. The order is the same in every run.
    waiters: BTreeMap<Owner, Instant>,
    /// The number of counts that each call left, and when that is forgotten.
    calls: HashMap<Owner, (u32, Instant)>,
}

impl Latches {
    /// True if there is a latch, open or not.
    pub(super) fn has(&self, name: &SharedName, now: Instant) -> bool {
        let latch = self
            .entries
            .get(name)
            .and_then(|entry| entry.latch.as_ref());
        latch.is_some_and(|latch| latch.expires > now)
    }

    /// Loses everything.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The number of latches and places. Remembered calls do not count: they are soon forgotten.
    pub(super) fn leftovers(&self, now: Instant) -> usize {
        let count = |entry: &Entry| {
            let live = entry.latch.as_ref().is_some_and(|one| one.expires > now);
            usize::from(live) + entry.waiters.values().filter(|until| **until > now).count()
        };
        self.entries.values().map(count).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn entry(&mut self, name: SharedName, now: Instant) -> &mut Entry {
        self.entries.sweep(|entry| {
            entry.sweep(now);
            !entry.is_empty()
        });
        let entry = self.entries.entry(name).or_default();
        entry.sweep(now);
        entry
    }

    pub(super) fn forget_if_empty(&mut self, name: &SharedName) {
        if self.entries.get(name).is_some_and(Entry::is_empty) {
            self.entries.remove(name);
        }
    }
}

impl Entry {
    fn sweep(&mut self, now: Instant) {
        self.latch = self.latch.take().filter(|latch| latch.expires > now);
        self.waiters.retain(|_, until| *until > now);
        self.calls.retain(|_, (_, until)| *until > now);
    }

    /// Removes the waiters' places and returns them.
    pub(super) fn take_waiters(&mut self) -> impl Iterator<Item = Owner> + use<> {
        std::mem::take(&mut self.waiters).into_keys()
    }

    fn is_empty(&self) -> bool {
        self.latch.is_none() && self.waiters.is_empty() && self.calls.is_empty()
    }

    fn record(&self, call: &LatchCall, micros: u64) -> LatchRecord {
        LatchRecord {
            latch: self.latch,
            left: self.calls.get(&call.owner).map(|(left, _)| *left),
            micros,
        }
    }

    /// Writes what a call has changed.
    fn change(&mut self, call: &LatchCall, changed: Option<StoredLatch>, now: Instant) {
        if let Some(latch) = changed {
            self.latch = changed;
            let remembered = (latch.count, now + CALL_REMEMBERED);
            self.calls.insert(call.owner, remembered);
        }
    }

    pub(super) fn set(
        &mut self,
        call: &LatchCall,
        count: u32,
        ttl: Duration,
        now: Instant,
        micros: u64,
    ) -> LatchSet {
        let (reply, changed) = self.record(call, micros).set(call, count, now + ttl);
        self.change(call, changed, now);
        reply
    }

    /// If the latch opens, also returns its generation. Its waiters are still in `waiters`.
    pub(super) fn count_down(
        &mut self,
        call: &LatchCall,
        now: Instant,
        micros: u64,
    ) -> (LatchCounted, Option<u64>) {
        let (reply, changed) = self.record(call, micros).count_down(call);
        self.change(call, changed, now);
        let opened = changed.filter(|latch| latch.count == 0);
        (reply, opened.map(|latch| latch.generation))
    }

    pub(super) fn wait(&mut self, owner: Owner, now: Instant) -> LatchFound {
        if StoredLatch::takes_waiters(self.latch) {
            self.waiters.insert(owner, now + QUEUE_TTL);
        }
        self.look(now)
    }

    pub(super) fn leave(&mut self, owner: Owner) {
        self.waiters.remove(&owner);
    }

    pub(super) fn look(&self, now: Instant) -> LatchFound {
        StoredLatch::look(self.latch, now)
    }
}
