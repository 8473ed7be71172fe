//! [`Level`] and [`LevelGauge`]: a number that goes up and down, and the recorder's copy of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use metrics::Gauge;

/// A number as the observer knows it, whoever records it.
#[derive(Clone, Debug, Default)]
pub(super) struct Level(Arc<AtomicI64>);

/// A gauge of one recorder that follows a [`Level`].
///
/// It is told differences: several clients share one gauge, which shows their sum. What it was told
/// is taken back with the observer.
#[derive(Debug)]
pub(super) struct LevelGauge {
    gauge: Gauge,
    level: Level,
    told: AtomicI64,
}

impl LevelGauge {
    /// Of a recorder that may have been installed late: it is told all that was before.
    pub(super) fn new(gauge: Gauge, level: Level) -> Self {
        let told = AtomicI64::new(0);
        let gauge = Self { gauge, level, told };
        gauge.record();
        gauge
    }

    pub(super) fn add(&self, difference: i64) {
        self.level.0.fetch_add(difference, Ordering::SeqCst);
        let told = self.told.fetch_add(difference, Ordering::SeqCst) + difference;
        self.gauge.increment(difference as f64);
        // Another thread adds as well, or another recorder was told. Whoever is last sees both.
        if told != self.level.0.load(Ordering::SeqCst) {
            self.record();
        }
    }

    pub(super) fn set(&self, level: usize) {
        let level = i64::try_from(level).unwrap_or(i64::MAX);
        self.level.0.store(level, Ordering::SeqCst);
        self.record();
    }

    /// Of several threads, the last one tells the last level: it looks again after it told one.
    fn record(&self) {
        loop {
            let level = self.level.0.load(Ordering::SeqCst);
            self.set_gauge(level);
            if self.level.0.load(Ordering::SeqCst) == level {
                return;
            }
        }
    }

    fn set_gauge(&self, level: i64) {
        let difference = level - self.told.swap(level, Ordering::SeqCst);
        if difference != 0 {
            self.gauge.increment(difference as f64);
        }
    }
}

impl Drop for LevelGauge {
    fn drop(&mut self) {
        self.set_gauge(0);
    }
}
