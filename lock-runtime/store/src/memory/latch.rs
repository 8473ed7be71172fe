//! Count-down latches of the embedded store.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use super::space::Name;
use crate::timing::{CALL_REMEMBERED, QUEUE_TTL};
use crate::{LatchRequest, LatchState, LatchVerb, Latched, Owner, SweepingMap};

/// All latches, and what is remembered beside them.
#[derive(Debug, Default)]
pub(super) struct Latches {
    entries: SweepingMap<Name, Entry>,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    latch: Option<Latch>,
    /// Until when each place counts.
    /// In an order that is the same in every run.
    waiters: BTreeMap<Owner, Instant>,
    /// What each call came to, and until when that is remembered.
    calls: HashMap<Owner, (Latched, Instant)>,
}

#[derive(Debug)]
struct Latch {
    count: u32,
    generation: u64,
    opened: u64,
    expires: Instant,
}

impl Latches {
    /// Whether there is one, open or not.
    pub(super) fn has(&self, name: &Name, now: Instant) -> bool {
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

    /// Latches and places; what calls came to, which is forgotten after a minute, not counted.
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

    pub(super) fn entry(&mut self, name: Name, now: Instant) -> &mut Entry {
        self.entries.sweep(|entry| {
            entry.sweep(now);
            !entry.is_empty()
        });
        let entry = self.entries.entry(name).or_default();
        entry.sweep(now);
        entry
    }

    pub(super) fn forget_if_empty(&mut self, name: &Name) {
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

    /// The places of those who wait, which are gone then.
    pub(super) fn take_waiters(&mut self) -> impl Iterator<Item = Owner> + use<> {
        std::mem::take(&mut self.waiters).into_keys()
    }

    fn is_empty(&self) -> bool {
        self.latch.is_none() && self.waiters.is_empty() && self.calls.is_empty()
    }

    /// Runs one verb. If the latch opens, the second is its generation, and who waited is in `waiters` still.
    pub(super) fn run(
        &mut self,
        request: &LatchRequest,
        now: Instant,
        micros: u64,
    ) -> (Latched, Option<u64>) {
        if let Some((earlier, _)) = self.calls.get(&request.owner) {
            return (*earlier, None);
        }
        let owner = request.owner;
        match request.verb {
            LatchVerb::Set { count, ttl } => {
                let before = self.latch.as_ref();
                if before.is_some_and(|latch| latch.count > 0) {
                    return (Latched::Set(false), None);
                }
                let opened = before.map_or(0, |latch| latch.generation);
                self.latch = Some(Latch {
                    count,
                    generation: (opened + 1).max(micros),
                    opened,
                    expires: now + ttl,
                });
                (self.remember(owner, Latched::Set(true), now), None)
            }
            LatchVerb::CountDown => match &mut self.latch {
                None => (Latched::NotSet, None),
                Some(latch) if latch.count == 0 => (Latched::Counted(0), None),
                Some(latch) => {
                    latch.count -= 1;
                    let (left, generation) = (latch.count, latch.generation);
                    let reply = self.remember(owner, Latched::Counted(left), now);
                    (reply, (left == 0).then_some(generation))
                }
            },
            LatchVerb::Look => (self.state(now), None),
            LatchVerb::Wait => {
                if self.latch.as_ref().is_none_or(|latch| latch.count > 0) {
                    self.waiters.insert(owner, now + QUEUE_TTL);
                }
                (self.state(now), None)
            }
            LatchVerb::Leave => {
                self.waiters.remove(&owner);
                (Latched::Left, None)
            }
        }
    }

    fn remember(&mut self, owner: Owner, reply: Latched, now: Instant) -> Latched {
        self.calls.insert(owner, (reply, now + CALL_REMEMBERED));
        reply
    }

    fn state(&self, now: Instant) -> Latched {
        self.latch.as_ref().map_or(Latched::NotSet, |latch| {
            Latched::Is(LatchState {
                count: latch.count,
                generation: latch.generation,
                opened: latch.opened,
                remaining: Some(latch.expires.saturating_duration_since(now)),
            })
        })
    }
}
