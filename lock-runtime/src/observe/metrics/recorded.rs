//! [`Recorded`]: what one recorder is told. Each metric is looked up there once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_store::StoreError;
use metrics::{Counter, Histogram, Recorder};

use super::level::{Level, LevelGauge};
use super::locks::{LockLabels, LockLevels, LockMetrics, labels_of};
use super::made::Made;
use super::table;
use crate::observe::event::{Event, GrantedBy, Verb, What};

/// What is true now, whoever records it: a recorder may be installed late.
#[derive(Debug, Default)]
pub(super) struct Levels {
    locks: Made<LockLabels, Arc<LockLevels>>,
    connections: Level,
    undo_pending: Level,
    /// Lost connections in whose place there is no other one yet.
    to_reconnect: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Recorded {
    locks: Made<LockLabels, LockMetrics>,
    grants: Made<&'static str, Counter>,
    renewals: Made<bool, Counter>,
    commands: Made<[&'static str; 2], (Counter, Histogram)>,
    connections: LevelGauge,
    undo_pending: LevelGauge,
}

impl Recorded {
    /// Describes the metrics, and tells what is true now.
    pub(super) fn new(by: &dyn Recorder, levels: &Levels) -> Self {
        for metric in table::METRICS {
            metric.describe(by);
        }
        let connections = table::CONNECTIONS.gauge(by, &[]);
        let undo_pending = table::UNDO_PENDING.gauge(by, &[]);
        let locks = Made::default();
        for labels in levels.locks.pin().keys() {
            let make = || LockMetrics::new(*labels, by, &levels.locks);
            locks.pin().get_or_insert_with(*labels, make);
        }
        Self {
            locks,
            grants: Made::default(),
            renewals: Made::default(),
            commands: Made::default(),
            connections: LevelGauge::new(connections, levels.connections.clone()),
            undo_pending: LevelGauge::new(undo_pending, levels.undo_pending.clone()),
        }
    }

    pub(super) fn record(&self, event: &Event<'_>, by: &dyn Recorder, levels: &Levels) {
        let locks = self.locks.pin();
        let lock = || {
            let labels = labels_of(event.lock.as_ref());
            let make = || LockMetrics::new(labels, by, &levels.locks);
            locks.get_or_insert_with(labels, make)
        };
        let ended = |outcome, waited| {
            let lock = lock();
            if event.was_queued {
                lock.waiting.add(-1);
            }
            lock.record_end(outcome, waited, by);
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
                self.record_grant(how, by);
            }
            What::Busy { waited } => _ = ended("busy", waited),
            What::Unavailable { waited, .. } => _ = ended("unavailable", waited),
            What::Refused { waited, .. } => _ = ended("refused", waited),
            What::Cancelled { waited } => _ = ended("cancelled", waited),
            What::Lost { reason, held } => lock().record_loss(reason, held, by),
            What::Released { held } => lock().record_release(held),
            What::Renewed { late } => self.record_renewal(late.is_zero(), by),
            What::Candidate => _ = lock().leading(by),
            What::TermBegan => lock().leading(by).add(1),
            What::TermEnded { how, .. } => lock().record_term_end(how, by),
            What::Undoing { pending } | What::Undone { pending } => self.undo_pending.set(pending),
            What::Command { verb, took, error } => self.record_command(verb, took, error, by),
            What::Connected { server } => {
                self.connections.add(1);
                if levels.is_in_place_of_a_lost_one() {
                    table::RECONNECTS.counter(by, &[server]).increment(1);
                }
            }
            What::Disconnected { .. } => {
                self.connections.add(-1);
                levels.to_reconnect.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn record_grant(&self, how: GrantedBy, by: &dyn Recorder) {
        let how = how.as_str();
        let make = || table::GRANTS.counter(by, &[how]);
        self.grants.pin().get_or_insert_with(how, make).increment(1);
    }

    fn record_renewal(&self, on_time: bool, by: &dyn Recorder) {
        let value = if on_time { "true" } else { "false" };
        let make = || table::RENEWALS.counter(by, &[value]);
        let renewals = self.renewals.pin();
        renewals.get_or_insert_with(on_time, make).increment(1);
    }

    fn record_command(
        &self,
        verb: Verb,
        took: Duration,
        error: Option<&StoreError>,
        by: &dyn Recorder,
    ) {
        let outcome = error.map_or("ok", |error| error.kind().as_str());
        let values = [verb.as_str(), outcome];
        let make = || {
            let count = table::COMMANDS.counter(by, &values);
            (count, table::COMMAND.histogram(by, &values[..1]))
        };
        let commands = self.commands.pin();
        let (count, time) = commands.get_or_insert_with(values, make);
        time.record(took);
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
