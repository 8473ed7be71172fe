//! Rate limiters: token buckets, and the logs of exact limits.

use std::time::Duration;

use super::SharedName;
use crate::instant::Instant;
use crate::rules::{PassLog, TokenBucket};
use crate::{RateRequest, Rated, SweepingMap};

/// Whole microseconds, as the rules of exact limits count.
const TICK: i64 = 1_000;

/// All buckets that are not full.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    buckets: SweepingMap<SharedName, Bucket>,
}

/// A bucket as it was then.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    at: Instant,
    tokens: TokenBucket,
}

impl Buckets {
    pub(super) fn clear(&mut self) {
        self.buckets.clear();
    }

    /// The number of buckets that are not full.
    pub(super) fn count(&self, now: Instant) -> usize {
        let open = self.buckets.values().filter(|bucket| !bucket.is_full(now));
        open.count()
    }

    pub(super) fn take(&mut self, name: SharedName, now: Instant, request: &RateRequest) -> Rated {
        let known = self.buckets.get(&name).copied();
        let (elapsed, tokens) = known
            .map_or((Some(Duration::ZERO), TokenBucket::default()), |bucket| {
                (now.checked_duration_since(bucket.at), bucket.tokens)
            });
        let (rated, changed) = tokens.take(elapsed, request);
        if let Some(tokens) = changed {
            self.buckets.sweep(|bucket| !bucket.is_full(now));
            self.buckets.insert(name, Bucket { at: now, tokens });
        }
        rated
    }
}

impl Bucket {
    fn is_full(&self, now: Instant) -> bool {
        self.tokens.debt <= now.saturating_duration_since(self.at)
    }
}

/// All logs of which something still counts.
#[derive(Debug, Default)]
pub(super) struct PassLogs {
    logs: SweepingMap<SharedName, LogThen>,
}

/// A log as it was then.
#[derive(Debug)]
struct LogThen {
    at: Instant,
    passes: PassLog,
    /// When the last of it counts no more.
    ends: Instant,
}

impl PassLogs {
    pub(super) fn clear(&mut self) {
        self.logs.clear();
    }

    /// The number of logs of which something still counts.
    pub(super) fn count(&self, now: Instant) -> usize {
        self.logs.values().filter(|log| log.ends > now).count()
    }

    pub(super) fn take(
        &mut self,
        name: SharedName,
        now: Instant,
        window: Duration,
        request: &RateRequest,
    ) -> Rated {
        let now = Instant::from_nanos(now.as_nanos() / TICK * TICK);
        let (rated, changed) = match self.logs.get(&name) {
            Some(log) => {
                let elapsed = now.checked_duration_since(log.at);
                log.passes.take(elapsed, window, request)
            }
            None => PassLog::default().take(Some(Duration::ZERO), window, request),
        };
        if let Some(passes) = changed {
            self.logs.sweep(|log| log.ends > now);
            let ends = now + passes.last() + window;
            let at = now;
            self.logs.insert(name, LogThen { at, passes, ends });
        }
        rated
    }
}
