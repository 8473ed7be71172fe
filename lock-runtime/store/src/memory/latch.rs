//! Count-down latches of the embedded store.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use super::{Connected, Name, Step};
use crate::key::LockKey;
use crate::timing::{CALL_REMEMBERED, QUEUE_TTL};
use crate::{LatchRequest, LatchState, LatchVerb, Latched, Owner, WakeUp};

/// All latches, and what is remembered beside them.
#[derive(Debug, Default)]
pub(super) struct Latches {
    entries: HashMap<Name, Entry>,
    /// When `entries` has grown to this, what has expired is removed.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Entry {
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

    fn entry(&mut self, name: Name, now: Instant) -> &mut Entry {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| {
                entry.sweep(now);
                !entry.is_empty()
            });
            self.sweep_at = (self.entries.len() * 2).max(64);
        }
        let entry = self.entries.entry(name).or_default();
        entry.sweep(now);
        entry
    }
}

impl Entry {
    fn sweep(&mut self, now: Instant) {
        self.latch = self.latch.take().filter(|latch| latch.expires > now);
        self.waiters.retain(|_, until| *until > now);
        self.calls.retain(|_, (_, until)| *until > now);
    }

    fn is_empty(&self) -> bool {
        self.latch.is_none() && self.waiters.is_empty() && self.calls.is_empty()
    }

    /// Runs one verb. If the latch opens, the second is its generation, and who waited is in `waiters` still.
    fn run(&mut self, request: &LatchRequest, now: Instant, micros: u64) -> (Latched, Option<u64>) {
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

impl Connected {
    /// Runs one verb on a latch, and wakes those for whom it opened.
    pub(super) fn latch_now(&self, request: &LatchRequest) -> Latched {
        let mut guard = self.store.lock();
        let server = &mut *guard;
        let now = self.clock.now();
        let micros = server.micros(now);
        let name = self.name(&request.key);
        let lock = server.spaces[self.space].get(&request.key);
        if lock.is_some_and(|lock| lock.holders.live(now) > 0) {
            return Latched::Conflict;
        }
        let entry = server.latches.entry(name.clone(), now);
        let (reply, opened) = entry.run(request, now, micros);
        // Who waits hears of it before anybody can learn more from this server, and is woken when it is unlocked.
        let mut wake_ups = Vec::<WakeUp>::new();
        if let Some(generation) = opened {
            for (owner, _) in std::mem::take(&mut entry.waiters) {
                let listener = server.listeners.get(&owner.client);
                if let Some(listener) = listener.and_then(std::sync::Weak::upgrade) {
                    wake_ups.push(listener.granted(super::LINK, owner, Some(generation)));
                }
            }
        }
        if entry.is_empty() {
            server.latches.entries.remove(&name);
        }
        drop(guard);
        drop(wake_ups);
        reply
    }

    /// Whether the key is a latch, which no lock can be taken on.
    pub(super) fn is_latch(&self, step: &Step<'_>, key: &LockKey) -> bool {
        !step.latches.entries.is_empty() && step.latches.has(&self.name(key), step.now)
    }
}
