//! [`Recorded`]: what one recorder is told. Each metric is looked up there once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_store::{StoreError, StoreErrorKind};
use metrics::{Counter, Histogram, Recorder};

use super::grown::{ByLock, Grown};
use super::level::{Level, LevelGauge};
use super::locks::{LockLevels, LockMetrics, labels_of};
use super::table;
use crate::observe::event::{Event, GrantedBy, Verb, What};

/// What is true now, whoever records it: a recorder may be installed late.
#[derive(Debug, Default)]
pub(super) struct Levels {
    locks: ByLock<LockLevels>,
    connections: Level,
    undo_pending: Level,
    /// Lost connections in whose place there is no other one yet.
    to_reconnect: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Recorded {
    recorder: usize,
    locks: ByLock<LockMetrics>,
    grants: Grown<(GrantedBy, Counter)>,
    renewals: Grown<(bool, Counter)>,
    command: Grown<(Verb, Histogram)>,
    commands: Grown<(Verb, Option<StoreErrorKind>, Counter)>,
    reconnects: Grown<(Box<str>, Counter)>,
    connections: LevelGauge,
    undo_pending: LevelGauge,
}

/// Where in memory it is: it is the same recorder as long as it is there.
fn address(recorder: &dyn Recorder) -> usize {
    std::ptr::from_ref(recorder).addr()
}

impl Recorded {
    /// Describes the metrics, and tells what is true now.
    pub(super) fn new(by: &dyn Recorder, levels: &Levels) -> Self {
        for metric in table::METRICS {
            metric.describe(by);
        }
        let connections = table::CONNECTIONS.gauge(by, &[]);
        let undo_pending = table::UNDO_PENDING.gauge(by, &[]);
        let locks = ByLock::default();
        for (labels, _) in levels.locks.iter() {
            locks.find_or_add(*labels, || LockMetrics::new(*labels, by, &levels.locks));
        }
        Self {
            recorder: address(by),
            locks,
            grants: Grown::default(),
            renewals: Grown::default(),
            command: Grown::default(),
            commands: Grown::default(),
            reconnects: Grown::default(),
            connections: LevelGauge::new(connections, levels.connections.clone()),
            undo_pending: LevelGauge::new(undo_pending, levels.undo_pending.clone()),
        }
    }

    pub(super) fn is_of(&self, recorder: &dyn Recorder) -> bool {
        self.recorder == address(recorder)
    }

    pub(super) fn record(&self, event: &Event<'_>, by: &dyn Recorder, levels: &Levels) {
        let lock = || {
            let labels = labels_of(event.lock.as_ref());
            let make = || LockMetrics::new(labels, by, &levels.locks);
            self.locks.find_or_add(labels, make)
        };
        let ended = |outcome, waited| {
            let lock = lock();
            if event.was_queued {
                lock.waiting.add(-1);
            }
            lock.ended(outcome, waited, by);
            lock
        };
        match event.what {
            // The gauges without labels are there from now on.
            What::Asked | What::Started | What::Unreachable { .. } => {}
            What::Queued => lock().waiting.add(1),
            What::Granted { waited, how } => {
                let lock = ended("granted", waited);
                // A nested request shares a hold that is counted already.
                if how != GrantedBy::Nested {
                    lock.held.add(1);
                }
                self.granted(how, by);
            }
            What::Busy { waited } => _ = ended("busy", waited),
            What::Unavailable { waited, .. } => _ = ended("unavailable", waited),
            What::Refused { waited, .. } => _ = ended("refused", waited),
            What::Cancelled { waited } => _ = ended("cancelled", waited),
            What::Lost { reason, held } => lock().lost(reason, held, by),
            What::Released { held } => lock().released(held),
            What::Renewed { late } => self.renewed(late.is_zero(), by),
            What::TermBegan => lock().term_began(by, &levels.locks),
            What::TermEnded { how, .. } => lock().term_ended(how, by, &levels.locks),
            What::Undoing { pending } | What::Undone { pending } => self.undo_pending.set(pending),
            What::Command { verb, took, error } => self.commanded(verb, took, error, by),
            What::Connected { server } => {
                self.connections.add(1);
                if levels.is_in_place_of_a_lost_one() {
                    self.reconnected(server, by);
                }
            }
            What::Disconnected { .. } => {
                self.connections.add(-1);
                levels.to_reconnect.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn granted(&self, how: GrantedBy, by: &dyn Recorder) {
        let make = || (how, table::GRANTS.counter(by, &[how.as_str()]));
        let (_, count) = self.grants.find_or_add(|(of, _)| *of == how, make);
        count.increment(1);
    }

    fn renewed(&self, on_time: bool, by: &dyn Recorder) {
        let value = if on_time { "true" } else { "false" };
        let make = || (on_time, table::RENEWALS.counter(by, &[value]));
        let (_, count) = self.renewals.find_or_add(|(of, _)| *of == on_time, make);
        count.increment(1);
    }

    fn commanded(&self, verb: Verb, took: Duration, error: Option<&StoreError>, by: &dyn Recorder) {
        let make = || (verb, table::COMMAND.histogram(by, &[verb.as_str()]));
        let (_, time) = self.command.find_or_add(|(of, _)| *of == verb, make);
        time.record(took);
        let kind = error.map(StoreError::kind);
        let outcome = kind.map_or("ok", StoreErrorKind::as_str);
        let make = || {
            let count = table::COMMANDS.counter(by, &[verb.as_str(), outcome]);
            (verb, kind, count)
        };
        let is_it = |(of, ended, _): &_| (*of, *ended) == (verb, kind);
        let (.., count) = self.commands.find_or_add(is_it, make);
        count.increment(1);
    }

    fn reconnected(&self, server: &str, by: &dyn Recorder) {
        let make = || (server.into(), table::RECONNECTS.counter(by, &[server]));
        let (_, count) = self.reconnects.find_or_add(|(of, _)| **of == *server, make);
        count.increment(1);
    }
}

impl Levels {
    fn is_in_place_of_a_lost_one(&self) -> bool {
        let one_less = |lost: u64| lost.checked_sub(1);
        let order = Ordering::Relaxed;
        self.to_reconnect
            .fetch_update(order, order, one_less)
            .is_ok()
    }
}
