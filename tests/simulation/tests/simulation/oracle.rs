//! Sees every grant of a run, and reports what must not happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use lock_runtime::{Guard, Probe};
use lock_store::Permits;

use lock_store::Instant;

use crate::world::{Check, World, now};

/// Rounding of timers that tick in milliseconds.
const TICKS: Duration = Duration::from_millis(5);

#[derive(Default)]
pub(crate) struct Oracle {
    keys: Mutex<BTreeMap<String, Key>>,
    /// The instants of events after which two may hold for a while.
    outside: Mutex<Vec<Instant>>,
}

#[derive(Default)]
struct Key {
    /// All owners that were granted the key and may still believe to hold it.
    believers: Vec<Believer>,
    tokens: BTreeSet<u64>,
    /// The highest token so far.
    highest: u64,
    /// The last writer that the guarded resource let in.
    writer: Option<Writer>,
    /// Two that believed at the same time after a fault outside the model, and when.
    doubles: Vec<(Instant, Probe, Probe)>,
}

#[derive(Clone)]
struct Believer {
    who: String,
    invoked: Instant,
    probe: Probe,
}

impl Believer {
    /// An event after this instant may make the believer wrong. The instant is that of its request,
    /// or of the store's last confirmation if that is earlier: tasks hand a hold off without
    /// the store.
    fn since(&self) -> Instant {
        self.probe.confirmed().min(self.invoked)
    }
}

/// A writer to a resource that checks tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    invoked: Instant,
    granted: Instant,
    token: u64,
}

/// The situation at the time of a request.
pub(crate) struct Invoked {
    at: Instant,
    highest: BTreeMap<String, u64>,
}

fn conflict(one: Option<Permits>, other: Option<Permits>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.of == Permits::READ_WRITE
                && u64::from(one.count) + u64::from(other.count) > u64::from(one.of)
        }
        _ => true,
    }
}

impl Oracle {
    fn keys(&self) -> MutexGuard<'_, BTreeMap<String, Key>> {
        self.keys.lock().unwrap()
    }

    pub(crate) fn invoke(&self, keys: &[&str]) -> Invoked {
        let known = self.keys();
        let highest = |key: &&str| {
            let highest = known.get(*key).map_or(0, |known| known.highest);
            ((*key).to_owned(), highest)
        };
        Invoked {
            at: now(),
            highest: keys.iter().map(highest).collect(),
        }
    }

    /// From now on, two may hold at once for a while.
    pub(crate) fn outside_the_model(&self) {
        self.outside.lock().unwrap().push(now());
    }

    pub(crate) fn is_outside(&self, since: Instant) -> bool {
        self.outside.lock().unwrap().iter().any(|at| *at >= since)
    }

    /// A request got its guard. Returns the writer of each key with a token.
    pub(crate) fn granted(
        &self,
        world: &World,
        who: &str,
        invoked: &Invoked,
        guard: &Guard,
    ) -> Vec<(String, Writer)> {
        let mut writers = Vec::new();
        let tokens = guard.fencing_tokens();
        for (at, key) in guard.keys().enumerate() {
            let key = key.as_str();
            self.enter(world, who, invoked, key, guard.probe());
            let token = tokens.as_ref().and_then(|tokens| tokens.get(at));
            if let Some(token) = token.map(|token| u64::from(*token)) {
                self.check_token(world, who, invoked, key, token);
                let writer = Writer {
                    invoked: invoked.at,
                    granted: now(),
                    token,
                };
                writers.push((key.to_owned(), writer));
            }
        }
        writers
    }

    fn enter(&self, world: &World, who: &str, invoked: &Invoked, key: &str, probe: Probe) {
        let mut keys = self.keys();
        let key_state = keys.entry(key.to_owned()).or_default();
        let believers = &mut key_state.believers;
        believers.retain(|believer| believer.probe.is_trusted());
        if !probe.is_trusted() {
            return;
        }
        let me = Believer {
            who: who.to_owned(),
            invoked: invoked.at,
            probe,
        };
        let mut found = Vec::new();
        for other in believers.iter() {
            if conflict(other.probe.permits(), me.probe.permits()) {
                found.push((
                    other.clone(),
                    format!("{} while {} holds {key}", me.who, other.who),
                ));
            }
        }
        believers.push(me.clone());
        let of = me
            .probe
            .permits()
            .map_or(1, |permits| u64::from(permits.of));
        let used: u64 = believers
            .iter()
            .filter_map(|believer| believer.probe.permits())
            .map(|permits| u64::from(permits.count))
            .sum();
        let oldest = believers.iter().min_by_key(|believer| believer.since());
        if let Some(oldest) = oldest.filter(|_| found.is_empty() && used > of) {
            found.push((
                oldest.clone(),
                format!("{} makes {used} permits of {of} on {key}", me.who),
            ));
        }
        for (other, what) in found {
            let since = other.since().min(me.since());
            if self.is_outside(since) {
                world
                    .counts
                    .add("two holders, after a fault outside the model");
                world.note(format_args!("outside the model: {what}"));
                if me.probe.permits().is_none() {
                    let double = (now(), other.probe, me.probe.clone());
                    key_state.doubles.push(double);
                }
            } else {
                world.violated(Check::Exclusion, what);
            }
        }
    }

    fn check_token(&self, world: &World, who: &str, invoked: &Invoked, key: &str, token: u64) {
        let mut keys = self.keys();
        let known = keys.entry(key.to_owned()).or_default();
        let before = invoked.highest.get(key).copied().unwrap_or(0);
        if !known.tokens.insert(token) {
            world.violated(
                Check::Tokens,
                format!("{who} has token {token} of {key} again"),
            );
        } else if token <= before {
            let what = format!("{who} has token {token} of {key} after {before}");
            world.violated(Check::Tokens, what);
        }
        known.highest = known.highest.max(token);
    }

    /// A write to a resource that accepts no token lower than the last one.
    pub(crate) fn write(&self, world: &World, who: &str, key: &str, writer: Writer) {
        let mut keys = self.keys();
        let known = keys.entry(key.to_owned()).or_default();
        let last = known.writer;
        if last.is_some_and(|last| writer.token < last.token) {
            world.counts.add("stale writes refused");
            return;
        }
        known.writer = Some(writer);
        if let Some(last) = last
            && writer.granted < last.invoked
        {
            let what = format!("{who} wrote to {key} with {writer:?} after {last:?}");
            world.violated(Check::StaleWrite, what);
        }
    }

    /// Of two that believed at once, one must have learnt of its loss after a lease.
    pub(crate) fn check_losers(&self, world: &World) {
        for (key, known) in self.keys().iter_mut() {
            known.doubles.retain(|(at, one, other)| {
                if !one.is_trusted() || !other.is_trusted() {
                    return false;
                }
                let late = now() > *at + one.lease().max(other.lease()) + TICKS;
                if late {
                    let what = format!("two have believed to hold {key} for longer than a lease");
                    world.violated(Check::LoserLearns, what);
                }
                !late
            });
        }
    }
}

/// The longest time that a request may take, however it ends.
pub(crate) fn check_waited(
    world: &World,
    who: &str,
    started: Instant,
    stopped: Duration,
    most: Duration,
) {
    let took = (now() - started).saturating_sub(stopped);
    if took > most + TICKS {
        let what = format!("{who} waited {took:?}, and at most {most:?} was allowed");
        world.violated(Check::Waiting, what);
    }
}
