//! Logs of exact limits.

use std::time::Duration;

use super::name::SharedName;
use crate::instant::Instant;
use crate::rules::PassLog;
use crate::{RateRequest, Rated, SweepingMap};

/// Whole microseconds, as the rules count.
const TICK: i64 = 1_000;

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
